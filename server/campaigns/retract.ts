import type { Trx } from '../database/connection.ts'
import type { EmailService } from '../emails/service.ts'
import { addCounts, sumOutcomes } from './counts.ts'
import { selectQueued, settleQueued, unqueue } from './engine-queries.ts'
import { type CampaignRow, updateCampaign } from './queries.ts'

/** Counts the recipients of a locked campaign whose first attempt is over. Returns the campaign with its new counts. */
export async function settle(trx: Trx, campaign: CampaignRow): Promise<CampaignRow> {
  if (campaign.queued_count === 0) return campaign
  const key = { accountId: campaign.account_id, id: campaign.id }
  const tallies = await settleQueued(trx, key)
  if (tallies.length === 0) return campaign
  const ended = tallies.reduce((sum, { count }) => sum + count, 0)
  return updateCampaign(trx, key, addCounts(campaign, { ...sumOutcomes(tallies), queued: -ended }))
}

/**
 * Removes the emails of a locked campaign for which no attempt was begun from the queue. Their recipients wait again if
 * the campaign is paused, and are canceled if it is canceled. Emails that are being sent go on. Returns the campaign with
 * its new counts.
 */
export async function retract(
  trx: Trx,
  emails: Pick<EmailService, 'takeBack' | 'cancelQueued'>,
  before: CampaignRow,
): Promise<CampaignRow> {
  const campaign = await settle(trx, before)
  if (campaign.queued_count === 0) return campaign
  const { account_id: accountId, id, status } = campaign
  const queued = await selectQueued(trx, { accountId, id })
  if (status === 'canceled') {
    const emailIds = await emails.cancelQueued(trx, accountId, queued)
    const { count } = await unqueue(trx, { accountId, id }, { emailIds, status: 'canceled' })
    return updateCampaign(trx, { accountId, id }, addCounts(campaign, { queued: -count, canceled: count }))
  }
  const emailIds = await emails.takeBack(trx, accountId, queued)
  const { first, count } = await unqueue(trx, { accountId, id }, { emailIds, status: 'waiting' })
  if (first === null) return campaign
  return updateCampaign(trx, { accountId, id }, { ...addCounts(campaign, { queued: -count }), ...placeBefore(first) })

  /** With local times, the order is by time and subscriber: then it goes on from the beginning. */
  function placeBefore(subscriberId: string): Partial<CampaignRow> {
    if (campaign.local_time !== null) return { handled_to: '', handled_send_at: null }
    return subscriberId < campaign.handled_to ? { handled_to: subscriberId } : {}
  }
}
