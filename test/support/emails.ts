import type { Db } from '../../server/database/connection.ts'
import type { RecipientState } from '../../server/email-delivery/recipient-transitions.ts'
import { newId } from '../../server/shared/ids.ts'

export type SeedEmail = {
  accountId: string
  at: Date
  /** Addresses. */
  to: readonly string[]
  domainId?: string | null
  scheduledAt?: Date
  trackOpens?: boolean
  campaignId?: string
  audienceId?: string
  topicId?: string
  subject?: string
  tags?: string[]
  text?: string
}

/** A recipient whose first attempt has begun. */
export function begunRecipient(at: Date): RecipientState {
  return {
    status: 'sending',
    attemptCount: 1,
    firstAttemptAt: at,
    nextAttemptAt: null,
    reason: null,
    withheldFor: null,
    delayedAt: null,
    acceptedAt: null,
    deliveredAt: null,
    openedAt: null,
    clickedAt: null,
    complainedAt: null,
  }
}

/** An account to own what a test makes. */
export async function seedAccount(db: Db, at: Date): Promise<string> {
  const id = newId('account', at)
  await db.insertInto('accounts').values({ id, name: 'Test', plan: 'scale' }).execute()
  return id
}

/** An email in the database, as the API would have stored it; its job is the caller's. Answers its id. */
export async function seedEmail(db: Db, { accountId, at, to, ...given }: SeedEmail): Promise<string> {
  const id = newId('email', at)
  const scheduled = given.scheduledAt ?? null
  await db
    .insertInto('emails')
    .values({
      id,
      account_id: accountId,
      mode: 'live',
      status: scheduled === null ? 'queued' : 'scheduled',
      domain_id: given.domainId ?? null,
      sender: 'Postern <hello@example.test>',
      subject: given.subject ?? 'Welcome',
      message_id: `<${id}@example.test>`,
      tags: given.tags ?? [],
      campaign_id: given.campaignId ?? null,
      audience_id: given.audienceId ?? null,
      // The table may be of a version without topics.
      ...(given.topicId !== undefined && { topic_id: given.topicId }),
      track_opens: given.trackOpens ?? false,
      scheduled_at: scheduled,
      created_at: at,
      updated_at: at,
      completed_at: null,
    })
    .execute()
  await db
    .insertInto('email_contents')
    .values({ email_id: id, headers: '{}', html: null, text: given.text ?? 'It is good to have you here.' })
    .execute()
  await db
    .insertInto('email_recipients')
    .values(
      to.map((address, position) => ({
        email_id: id,
        position,
        account_id: accountId,
        kind: 'to' as const,
        name: null,
        address,
        address_key: address.toLowerCase(),
        domain: address.slice(address.lastIndexOf('@') + 1).toLowerCase(),
        status: 'queued' as const,
        first_attempt_at: null,
        next_attempt_at: scheduled,
        reason: null,
        delayed_at: null,
        accepted_at: null,
        delivered_at: null,
        opened_at: null,
        clicked_at: null,
        complained_at: null,
      })),
    )
    .execute()
  return id
}
