import { LRUCache } from 'lru-cache'
import { afterCommit, type Db, inTransaction, type Trx } from '../database/connection.ts'
import type { Clock } from '../lib/clock.ts'
import { DomainError } from '../shared/errors.ts'
import {
  type AccountEmailRow,
  claimEmails,
  countInvitationEmails,
  endAttempt,
  insertInvitationEmail,
  insertReset,
  setLinkOfReset,
} from './account-email-queries.ts'
import {
  deleteEmailedResetLinks,
  type FoundLinkRow,
  hasEmailedResetLink,
  lockLink,
  markEmail,
  setTokenHash,
} from './link-queries.ts'
import { linkUrl, makeLink } from './links.ts'
import { findUserByEmail, lockUser } from './queries.ts'
import type { Client } from './sessions.ts'
import { hashOfToken, newToken } from './tokens.ts'

const dayMs = 24 * 3_600_000
/** Emails with invitations that an account may send in 24 hours, and of these to one address. */
export const invitationEmailsADay = { ofAccount: 200, ofAddress: 5 } as const
/** Resets that one client may ask for in an hour. In this process. */
export const resetsAnHour = 10
/** After an email with a reset, the next one for the address. Milliseconds. */
export const resetPauseMs = 10 * 60_000
const hourMs = 3_600_000
const maxClients = 100_000
/** How long a process may take over one attempt before another one does. Milliseconds. */
const claimMs = 120_000
/** Waits between attempts. The last one repeats, for a day. Milliseconds. */
const retryMs = [10_000, 60_000, 300_000, 900_000, 1_800_000] as const

export type AccountEmailKind = AccountEmailRow['kind']

/** An email to send, with its link. The token in the link is stored nowhere. */
export type AccountEmail = {
  kind: AccountEmailKind
  /** Identifies the email; the same in each attempt. */
  linkId: string
  to: string
  link: string
  expiresAt: Date
  /** Null: a reset. */
  invitation: { accountName: string; role: string } | null
}

/** The outcome of an attempt to send. `later`: try again. `failed`: the address was refused for good. */
export type AttemptOutcome = 'sent' | 'later' | 'failed'

/** A claimed email. */
export type ClaimedAccountEmail = {
  kind: AccountEmailKind
  /** Emails with the same sender are sent one at a time. It is the account that invites, or the address of a reset. */
  sender: string
  /**
   * Makes the token of the link and returns the email. Null: there is nothing to send, for example because the address
   * has no user or the link has ended; the email is done then.
   */
  prepare(): Promise<AccountEmail | null>
  settle(outcome: AttemptOutcome): Promise<void>
}

/** Emails of the service itself to people who sign in. They are queued in the transaction of what they tell of. */
export type AccountEmailService = {
  /**
   * Asks for a link that resets the password of the user with this address. Does the same work for every address:
   * whether there is a user is looked up later. Throws `account_email_off`, and `rate_limit_exceeded` for a client that
   * asks for too many.
   */
  requestReset(db: Db, email: string, client: Client): Promise<void>
  /** Claims emails that are due: see `claimEmails`. */
  claim(
    db: Db,
    options: { kind: AccountEmailKind; limit: number; busy: readonly string[] },
  ): Promise<ClaimedAccountEmail[]>
}

/** How invitations are sent. Null: not by email; their links are shown. */
export type InvitationEmails = {
  /** Queues the email of an invitation. Throws `conflict` when the account has sent the most of a day. */
  queue(trx: Trx, invitation: { accountId: string; linkId: string; email: string; at: Date }): Promise<void>
} | null

export type AccountEmailOptions = {
  clock: Clock
  /** Returns the URL of the service that links begin with, without a slash at the end. */
  serviceUrl: () => string
  /** Called after a commit that queued an email. Null: the service sends no such emails. */
  wake: (() => void) | null
}

export function createInvitationEmails({ wake }: Pick<AccountEmailOptions, 'wake'>): InvitationEmails {
  if (wake === null) return null
  return {
    async queue(trx, invitation) {
      const { accountId, email, at } = invitation
      const since = new Date(at.getTime() - dayMs)
      const sent = await countInvitationEmails(trx, { accountId, email, since })
      if (sent.ofAccount >= invitationEmailsADay.ofAccount) throw tooManyEmails('', invitationEmailsADay.ofAccount)
      if (sent.ofAddress >= invitationEmailsADay.ofAddress)
        throw tooManyEmails(' to this address', invitationEmailsADay.ofAddress)
      await insertInvitationEmail(trx, invitation)
      afterCommit(trx, wake)
    },
  }
}

export function createAccountEmailService({ clock, serviceUrl, wake }: AccountEmailOptions): AccountEmailService {
  const asked = new LRUCache<string, number>({ max: maxClients })
  let hour = 0

  function assertMayAsk({ network }: Client): void {
    const now = clock.now().getTime()
    const current = Math.floor(now / hourMs)
    if (current !== hour) {
      hour = current
      asked.clear()
    }
    const count = (asked.get(network) ?? 0) + 1
    asked.set(network, count)
    if (count <= resetsAnHour) return
    throw new DomainError(
      'rate_limit_exceeded',
      `Your network asked for the ${resetsAnHour} links that are allowed in an hour: try again later.`,
      { retryAfterSeconds: Math.ceil(((current + 1) * hourMs - now) / 1000) },
    )
  }

  /** Returns the link of a reset with a new token. Null: nothing is sent. */
  async function linkOfReset(
    trx: Trx,
    row: AccountEmailRow,
  ): Promise<{ id: string; token: string; expiresAt: Date } | null> {
    const at = clock.now()
    // Asked for too long ago: no worker ran meanwhile.
    if (row.link_id !== null || at.getTime() - row.created_at.getTime() > hourMs) return null
    const found = await findUserByEmail(trx, row.email)
    if (found === undefined) return null
    const { id: userId } = await lockUser(trx, found.id)
    // The link of that email still works, so that a stranger who asks again and again takes it from no user.
    if (await hasEmailedResetLink(trx, { userId, since: new Date(at.getTime() - resetPauseMs) })) return null
    await deleteEmailedResetLinks(trx, userId)
    const made = await makeLink(trx, { kind: 'password_reset', userId, byEmail: true, at })
    await setLinkOfReset(trx, row.id, made.id)
    return made
  }

  async function prepare(trx: Trx, row: AccountEmailRow): Promise<AccountEmail | null> {
    const made = row.kind === 'password_reset' ? await linkOfReset(trx, row) : null
    const linkId = made?.id ?? row.link_id
    const link = linkId === null ? undefined : await lockLink(trx, linkId)
    if (link === undefined || link.expires_at <= clock.now()) {
      await endAttempt(trx, row, null)
      return null
    }
    return toEmail(row, link, made?.token ?? (await replaceTokenOf(trx, link)))
  }

  /** Each attempt has a token of its own: the one of the attempt before is not kept. */
  async function replaceTokenOf(trx: Trx, { id }: FoundLinkRow): Promise<string> {
    const token = newToken()
    await setTokenHash(trx, id, hashOfToken(token))
    return token
  }

  function toEmail({ kind, email: to }: AccountEmailRow, link: FoundLinkRow, token: string): AccountEmail {
    const { id: linkId, role, account_name: accountName, expires_at: expiresAt } = link
    const invitation = role === null || accountName === null ? null : { role, accountName }
    return { kind, linkId, to, link: linkUrl(serviceUrl(), token), expiresAt, invitation }
  }

  async function settle(trx: Trx, row: AccountEmailRow, outcome: AttemptOutcome): Promise<void> {
    const at = clock.now()
    const waitMs = retryMs[Math.min(row.attempts, retryMs.length) - 1] ?? retryMs[0]
    const nextAt = new Date(at.getTime() + waitMs)
    const isLast = nextAt.getTime() - row.created_at.getTime() > dayMs
    const dueAt = outcome === 'later' && !isLast ? nextAt : null
    if (dueAt === null) await markEmail(trx, row, { sent: outcome === 'sent', at })
    await endAttempt(trx, row, dueAt)
  }

  return {
    async requestReset(db, given, client) {
      if (wake === null) throw emailOff()
      assertMayAsk(client)
      const email = given.toLowerCase()
      await inTransaction(db, async (trx) => {
        await insertReset(trx, { email, at: clock.now() })
        afterCommit(trx, wake)
      })
    },
    async claim(db, { kind, limit, busy }) {
      const now = clock.now()
      const until = new Date(now.getTime() + claimMs)
      const rows = await claimEmails(db, { kind, limit, busy, now, until })
      return rows.map((row) => {
        // A reset gets its link in its first attempt, and settling needs to know it.
        let current = row
        return {
          kind,
          sender: row.account_id ?? row.email,
          async prepare() {
            const email = await inTransaction(db, (trx) => prepare(trx, row))
            if (email !== null) current = { ...row, link_id: email.linkId }
            return email
          },
          settle: (outcome) => inTransaction(db, (trx) => settle(trx, current, outcome)),
        }
      })
    },
  }
}

function tooManyEmails(to: string, limit: number): DomainError {
  return new DomainError(
    'conflict',
    `The account has sent the ${limit} invitations${to} that are allowed in 24 hours: try again later.`,
  )
}

function emailOff(): DomainError {
  return new DomainError(
    'account_email_off',
    'This service sends no email to its users. Ask its operator, who makes a link with: npm run --silent postern -- users reset-password <address>',
  )
}
