import type { Result } from '../../api/client.ts'
import { wordOf } from '../../components/state.tsx'
import { percentOf } from '../overview/format.ts'

export type Campaign = Result<'GET /v1/campaigns'>['data'][number]
export type CampaignDetails = Result<'GET /v1/campaigns/:id'>
export type CampaignStatus = Campaign['status']
export type CampaignFigures = Result<'GET /v1/campaigns/:id/statistics'>
export type CampaignRecipient = Result<'GET /v1/campaigns/:id/recipients'>['data'][number]

/** All states, in the order in which a campaign comes through them. */
const statuses: Readonly<Record<CampaignStatus, true>> = {
  draft: true,
  scheduled: true,
  sending: true,
  paused: true,
  completed: true,
  canceled: true,
}

export const statusOptions = Object.keys(statuses).map((value) => ({ value, label: wordOf(value) }))

/** Returns whether the figures of a campaign may still change by themselves within seconds. */
export function isMoving({ status, scheduledAt }: Campaign, nowMs: number): boolean {
  if (status === 'scheduled') return scheduledAt === null || Date.parse(scheduledAt) - nowMs < 60_000
  return status === 'sending'
}

/** Returns how many of the recipients need nothing more. */
export function handledOf({ handedOver, failed, skipped, canceled }: CampaignFigures): number {
  return handedOver + failed + canceled + skipped.left + skipped.unsubscribed + skipped.suppressed
}

/**
 * Returns of what the content could not be rendered when the service paused the campaign for that: of all of it, or of
 * variants of its A/B test. Null: it is not paused, or for something else.
 */
export function faultyContent({ status, statusReason }: Campaign): 'campaign' | 'variant' | null {
  if (status !== 'paused' || statusReason === null) return null
  if (statusReason.startsWith('The content could not be rendered')) return 'campaign'
  return statusReason.startsWith('The content of the variant') ? 'variant' : null
}

/** Returns a share of a count for people. */
export function rateOf(count: number, of: number, places: 1 | 2 = 1): string {
  return percentOf(of === 0 ? null : count / of, places)
}
