import type { Campaign, CampaignDetails, CampaignRecipient } from '../../contract/campaign-resource.ts'
import type { CampaignPageRef } from '../message/mail-tokens.ts'
import { fallbacksIn, fallbacksOf } from './fallbacks.ts'
import type { CampaignRow, CampaignSummary, RecipientRow } from './queries.ts'
import type { Variant } from './variants.ts'

/** Returns the address of the page of a campaign for everybody. */
export type ArchiveUrl = (ref: CampaignPageRef) => string

/** Returns the functions that show campaigns to clients. */
export function createToResponse(archiveUrl: ArchiveUrl) {
  function toCampaign(row: CampaignSummary): Campaign {
    const { account_id: accountId, id: campaignId } = row
    return {
      id: row.id,
      mode: row.mode,
      status: row.status,
      statusReason: row.status_reason,
      name: row.name,
      audienceId: row.audience_id,
      segmentIds: row.segment_ids,
      topicId: row.topic_id,
      from: row.sender,
      replyTo: row.reply_to,
      subject: row.subject,
      templateId: row.template_id,
      templateVersion: row.template_version,
      trackOpens: row.track_opens,
      trackClicks: row.track_clicks,
      tags: row.tags,
      metadata: row.metadata,
      throttle: row.throttle,
      sendWindow: row.send_window,
      lateStart: row.late_start,
      archive: row.archive,
      abTest: toAbTest(row),
      archiveUrl: row.archive === 'public' ? archiveUrl({ accountId, campaignId }) : null,
      recipients: row.recipient_count,
      scheduledAt: row.scheduled_at?.toISOString() ?? null,
      localTime: row.local_time,
      fallbackTimezone: row.fallback_timezone,
      waitingFor: waitingFor(row),
      startedAt: row.started_at?.toISOString() ?? null,
      endedAt: row.ended_at?.toISOString() ?? null,
      createdAt: row.created_at.toISOString(),
      updatedAt: row.updated_at.toISOString(),
    }
  }

  function toDetails(row: CampaignRow, variants: readonly Variant[]): CampaignDetails {
    const { preheader, html, mjml, text, variables } = row
    const campaign = toCampaign(row)
    const abTest = campaign.abTest && {
      ...campaign.abTest,
      variants: variants.map((variant) => toVariant(row, variant)),
    }
    return { ...campaign, abTest, content: { preheader, html, mjml, text, fallbacks: fallbacksOf(row) }, variables }
  }

  return { toCampaign, toDetails }
}

function toVariant(campaign: CampaignRow, { name, subject, content }: Variant) {
  const { template_id: templateId = null, template_version: templateVersion = null } = content ?? {}
  const about = { name, subject, templateId, templateVersion }
  if (content === null || (templateId !== null && templateVersion === null)) return { ...about, content: null }
  const { preheader, html, mjml, text, constants } = content
  return { ...about, content: { preheader, html, mjml, text, fallbacks: fallbacksIn(campaign, constants) } }
}

function toAbTest({ ab_test: test, ab_winner: winner, ab_decided_at: at }: CampaignSummary): Campaign['abTest'] {
  return test && { ...test, winner: nameOf(test, winner), decidedAt: at?.toISOString() ?? null }
}

/** Returns the name of a variant. Null: of none. */
function nameOf(test: CampaignRow['ab_test'], number: number | null): string | null {
  return number === null ? null : (test?.variants[number]?.name ?? null)
}

/** Returns the name of the variant that a recipient gets. Null: there is no test, or it is not known yet. */
export function variantOf(
  { ab_test: test, ab_winner: winner }: Pick<CampaignRow, 'ab_test' | 'ab_winner'>,
  { variant }: Pick<RecipientRow, 'variant'>,
): string | null {
  return nameOf(test, variant ?? winner)
}

function waitingFor({ status, waiting_for: reason, waiting_until: until }: CampaignSummary): Campaign['waitingFor'] {
  return status === 'sending' && reason !== null ? { reason, until: until?.toISOString() ?? null } : null
}

export function toRecipient(campaign: CampaignRow, row: RecipientRow): CampaignRecipient {
  return {
    subscriberId: row.subscriber_id,
    email: row.email,
    status: row.status,
    reason: row.reason,
    sendAt: row.send_at?.toISOString() ?? null,
    variant: variantOf(campaign, row),
    emailId: row.email_id,
    emailStatus: row.email_status,
  }
}
