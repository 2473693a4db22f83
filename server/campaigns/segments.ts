import { type RawBuilder, sql } from 'kysely'
import type { Handle, Trx } from '../database/connection.ts'
import {
  conditionOfSegments,
  holdSegments,
  missingSegments,
  segmentConditions,
  segmentsOf,
} from '../segments/segment-conditions.ts'
import { DomainError } from '../shared/errors.ts'
import type { CampaignFields, CampaignRow } from './queries.ts'

/** Throws `segment_invalid` when a segment of a campaign is not one of its audience, or cannot be used now. */
export async function checkSegments(
  handle: Handle,
  accountId: string,
  { audience_id: audienceId, segment_ids: ids }: Pick<CampaignFields, 'audience_id' | 'segment_ids'>,
): Promise<void> {
  if (ids.length === 0) return
  refuseMissing(await missingSegments(handle, accountId, { audienceId, ids }), { audienceId, ids })
  await segmentConditions(handle, accountId, { audienceId, ids })
}

/**
 * Locks the segments of a campaign, so that none is deleted before the transaction ends. Throws `segment_invalid` when one
 * is not a segment of its audience.
 */
export async function holdSegmentsOf(
  trx: Trx,
  accountId: string,
  { audience_id: audienceId, segment_ids: ids }: Pick<CampaignFields, 'audience_id' | 'segment_ids'>,
): Promise<void> {
  if (ids.length === 0) return
  refuseMissing(await holdSegments(trx, accountId, { audienceId, ids }), { audienceId, ids })
}

function refuseMissing(
  missing: readonly string[],
  { audienceId, ids }: { audienceId: string; ids: readonly string[] },
): void {
  const [first] = missing
  if (first === undefined) return
  const details = missing.map((id) => ({
    path: `body.segmentIds[${ids.indexOf(id)}]`,
    message: 'must be a segment of the audience',
  }))
  const message = `There is no segment with the id "${first}" in the audience "${audienceId}" of this account.`
  throw new DomainError('segment_invalid', message, { details })
}

/**
 * Returns the condition for the people whom a campaign goes to, over the aliases `c` (`contacts`) and `s` (their row of
 * `subscribers`), with the segments that it was made of: those of the first step, which later ones find in the campaign.
 * As text, why there is none, for people.
 *
 * @param at When the list of recipients was begun.
 */
export async function conditionOf(
  trx: Trx,
  { account_id: accountId, audience_id: audienceId, segment_ids: ids, listed_segments: listed }: CampaignRow,
  at: Date,
): Promise<{ condition: RawBuilder<boolean>; segments: CampaignRow['listed_segments'] } | string> {
  if (ids.length === 0) return { condition: sql<boolean>`true`, segments: null }
  try {
    const segments = listed ?? (await segmentsOf(trx, accountId, { audienceId, ids }))
    return { condition: await conditionOfSegments(trx, accountId, { segments, at }), segments }
  } catch (error) {
    if (error instanceof DomainError) return `Its recipients could not be listed: ${error.message}`
    throw error
  }
}
