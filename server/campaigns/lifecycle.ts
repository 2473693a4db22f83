import { isDeepStrictEqual } from 'node:util'
import { type Campaign, campaignLimits } from '../../contract/campaign-resource.ts'
import { type NewAuditEntry, record } from '../audit-log/record.ts'
import { lockAccount } from '../database/account-lock.ts'
import { type Handle, inTransaction, type Trx } from '../database/connection.ts'
import type { EmailService } from '../emails/service.ts'
import type { Clock } from '../lib/clock.ts'
import { DomainError, notFound } from '../shared/errors.ts'
import type { AuthoredScope, Scope } from '../shared/scope.ts'
import type { CampaignChecks } from './checks.ts'
import { chooseWinner } from './choose-winner.ts'
import { isSameContent } from './message.ts'
import {
  type CampaignRow,
  countActive,
  deleteCampaign,
  findCampaign,
  hasWaitingEmails,
  hideCampaign,
  lockCampaign,
  setDue,
  updateCampaign,
} from './queries.ts'
import { retract } from './retract.ts'
import { type StartTime, startOf } from './start-time.ts'
import { type Move, statusAfter, wrongState } from './states.ts'
import { replaceVariantContents, selectVariants } from './variants.ts'

/** What people do with a campaign as a whole, from its start to its end. Each call is in the audit log. */
export type CampaignLifecycle = {
  /**
   * Deletes a campaign at once for readers, and its list of recipients later, in steps. Throws `campaign_state` while
   * it is under way, and when it was canceled and emails of it still wait.
   */
  delete(handle: Handle, scope: AuthoredScope, id: string): Promise<void>
  /**
   * Starts a draft at a time, for each person at a local time, or now (null), with the published version of its
   * template. Throws what creating throws, `template_fault`, `domain_not_verified`, `public_url_needed`,
   * `campaign_state` and `too_many_campaigns`.
   */
  send(handle: Handle, scope: AuthoredScope, id: string, when: StartTime): Promise<Campaign>
  /** Takes what is queued out of the queue, to be made again later. */
  pause(handle: Handle, scope: AuthoredScope, id: string): Promise<Campaign>
  resume(handle: Handle, scope: AuthoredScope, id: string): Promise<Campaign>
  cancel(handle: Handle, scope: AuthoredScope, id: string): Promise<Campaign>
  /**
   * Has the rest of a campaign get a variant of its A/B test, once everybody in the test was written to. Choosing the same
   * again changes nothing. Throws `rule_violation` for an unknown variant, and `campaign_state`.
   */
  chooseWinner(handle: Handle, scope: AuthoredScope, id: string, variant: string): Promise<Campaign>
}

type Means = {
  clock: Clock
  emails: Pick<EmailService, 'takeBack' | 'cancelQueued'>
  checks: CampaignChecks
  toCampaign: (row: CampaignRow) => Campaign
}

export async function mustFind(handle: Handle, scope: Scope, id: string): Promise<CampaignRow> {
  const row = await findCampaign(handle, scope, id)
  if (row === undefined) throw notFound('campaign', id)
  return row
}

export async function mustLock(trx: Trx, scope: Scope, id: string): Promise<CampaignRow> {
  const row = await lockCampaign(trx, scope, id)
  if (row === undefined) throw notFound('campaign', id)
  return row
}

export function createLifecycle({ clock, emails, checks, toCampaign }: Means): CampaignLifecycle {
  async function audit(
    trx: Trx,
    { accountId, author, mode }: AuthoredScope,
    { id, name }: Pick<CampaignRow, 'id' | 'name'>,
    { action, details }: Pick<NewAuditEntry, 'action' | 'details'>,
  ): Promise<void> {
    const target = { type: 'campaign', id, name } as const
    await record(trx, { accountId, at: clock.now(), author, action, target, details: { mode, ...details } })
  }

  /** Moves a campaign and returns it. */
  async function move(
    handle: Handle,
    scope: AuthoredScope,
    { id, how, what }: { id: string; how: Move; what: 'paused' | 'resumed' | 'canceled' },
  ): Promise<Campaign> {
    return inTransaction(handle, async (trx) => {
      const row = await mustLock(trx, scope, id)
      const status = statusAfter(how, row.status)
      if (status === null) throw wrongState(id, row.status, what)
      const at = clock.now()
      const ended = status === 'canceled' ? { ended_at: at, listed_segments: null } : {}
      const key = { accountId: scope.accountId, id }
      const moved = await updateCampaign(trx, key, {
        status,
        status_reason: null,
        failed_turns: 0,
        updated_at: at,
        ...ended,
      })
      const left = status === 'sending' ? moved : await retract(trx, emails, moved)
      const isOver = status !== 'sending' && left.queued_count === 0
      await setDue(trx, key, isOver ? null : 0)
      await audit(trx, scope, row, { action: `campaign.${what}` })
      return toCampaign(left)
    })
  }

  return {
    async delete(handle, scope, id) {
      await inTransaction(handle, async (trx) => {
        const row = await mustLock(trx, scope, id)
        const { status, listed_at: listedAt } = row
        const key = { accountId: scope.accountId, id }
        if (status === 'scheduled' || status === 'sending' || status === 'paused') {
          throw wrongState(id, status, 'deleted')
        }
        if (status === 'canceled' && (await hasWaitingEmails(trx, key))) {
          const message = `The campaign "${id}" is canceled, but emails of it are still on their way: they would be sent if it was deleted. Delete it when GET /v1/emails?campaign=${id} lists none with the status queued or sending.`
          throw new DomainError('campaign_state', message)
        }
        if (listedAt === null) await deleteCampaign(trx, key)
        else await hideCampaign(trx, key, clock.now())
        await audit(trx, scope, row, { action: 'campaign.deleted' })
      })
    },
    async send(handle, scope, id, when) {
      // Before it is compiled, which takes a moment: a time that was to come when it was asked for is a right one.
      const now = clock.now()
      const compiled = await mustFind(handle, scope, id)
      const variants = await selectVariants(handle, compiled)
      await checks.mustCompile(compiled, variants)
      return inTransaction(handle, async (trx) => {
        await lockAccount(trx, scope.accountId)
        const row = await mustLock(trx, scope, id)
        const status = statusAfter('send', row.status)
        if (status === null) throw wrongState(id, row.status, 'sent')
        if (!isSameContent(row, compiled) || !isDeepStrictEqual(await selectVariants(trx, row), variants)) {
          throw new DomainError('campaign_state', `The campaign "${id}" was changed meanwhile. Send it again.`)
        }
        const start = await startOf(trx, row, { when, now })
        const { content, sent } = await checks.check(trx, scope.accountId, { fields: row, faults: [], variants })
        await checks.mustBeSendable(trx, scope, { ...row, ...content })
        if ((await countActive(trx, scope.accountId)) >= campaignLimits.active) {
          const message = `The account has ${campaignLimits.active} campaigns that are scheduled, sending or paused, the most there may be. Wait for one to end, or cancel one.`
          throw new DomainError('too_many_campaigns', message)
        }
        await replaceVariantContents(trx, { accountId: scope.accountId, id }, sent)
        const change = { ...content, ...start, status, due_at: start.scheduled_at, updated_at: now }
        await audit(trx, scope, row, startingOf(row, { when, start }))
        return toCampaign(await updateCampaign(trx, { accountId: scope.accountId, id }, change))
      })
    },
    pause: (handle, scope, id) => move(handle, scope, { id, how: 'pause', what: 'paused' }),
    resume: (handle, scope, id) => move(handle, scope, { id, how: 'resume', what: 'resumed' }),
    cancel: (handle, scope, id) => move(handle, scope, { id, how: 'cancel', what: 'canceled' }),
    async chooseWinner(handle, scope, id, name) {
      return inTransaction(handle, async (trx) => {
        const row = await mustLock(trx, scope, id)
        const chosen = await chooseWinner(trx, row, { name, at: clock.now() })
        if (chosen.ab_winner !== row.ab_winner) {
          await audit(trx, scope, row, { action: 'campaign.winner_chosen', details: { variant: name } })
        }
        return toCampaign(chosen)
      })
    },
  }
}

/** Returns the action and details of the audit log entry for a campaign that is sent or scheduled. */
function startingOf(
  { audience_id: audienceId }: Pick<CampaignRow, 'audience_id'>,
  { when, start }: { when: StartTime; start: Pick<CampaignRow, 'local_time'> & { scheduled_at: Date } },
): Pick<NewAuditEntry, 'action' | 'details'> {
  if (when === null) return { action: 'campaign.sent', details: { audienceId } }
  const { local_time: localTime, scheduled_at: at } = start
  const time = localTime === null ? { scheduledAt: at.toISOString() } : { localTime }
  return { action: 'campaign.scheduled', details: { audienceId, ...time } }
}
