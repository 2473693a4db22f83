import { type Selectable, sql } from 'kysely'
import type { Db, Handle, Trx } from '../database/connection.ts'
import type { AccountEmailsTable } from '../database/tables/users.ts'

export type AccountEmailRow = Selectable<AccountEmailsTable>

/*
 * Resets belong to no account, and the worker sends those of all accounts: only what an account asks for names one.
 */

export async function insertInvitationEmail(
  trx: Trx,
  email: { accountId: string; linkId: string; email: string; at: Date },
): Promise<void> {
  const { accountId: account_id, linkId: link_id, at } = email
  await trx
    .insertInto('account_emails')
    .values({ kind: 'invitation', account_id, link_id, email: email.email, created_at: at, due_at: at })
    .execute()
}

/**
 * Stores that a reset was asked for, unless one for the address is under way. Writes in both cases, so that the time it
 * takes does not tell whether there was one.
 */
export async function insertReset(trx: Trx, { email, at }: { email: string; at: Date }): Promise<void> {
  await sql`
    INSERT INTO account_emails AS present (kind, email, created_at, due_at)
    VALUES ('password_reset', ${email}, ${at}, ${at})
    ON CONFLICT (email) WHERE kind = 'password_reset' DO UPDATE SET created_at = present.created_at
  `.execute(trx)
}

export type InvitationCounts = { ofAccount: number; ofAddress: number }

/** Counts the emails with invitations of an account, and of it to one address, that were asked for after `since`. */
export async function countInvitationEmails(
  trx: Trx,
  { accountId, email, since }: { accountId: string; email: string; since: Date },
): Promise<InvitationCounts> {
  const counts = await trx
    .selectFrom('account_emails')
    .select(({ fn }) => [
      fn.countAll<string>().as('ofAccount'),
      fn.countAll<string>().filterWhere('email', '=', email).as('ofAddress'),
    ])
    .where('account_id', '=', accountId)
    .where('created_at', '>', since)
    .executeTakeFirstOrThrow()
  return { ofAccount: Number(counts.ofAccount), ofAddress: Number(counts.ofAddress) }
}

export type ClaimOptions = {
  kind: AccountEmailRow['kind']
  limit: number
  now: Date
  /** When other processes may take them over. */
  until: Date
  /** Accounts and addresses that have one under way here. */
  busy: readonly string[]
}

/** Emails looked at by one claim. */
const claimWindow = 1_000

/**
 * Claims emails that are due, at most one of an account, and of resets one for an address. An account whose emails are
 * slow to send thus delays no other.
 */
export async function claimEmails(db: Db, options: ClaimOptions): Promise<AccountEmailRow[]> {
  const { kind, limit, now, until, busy } = options
  const { rows } = await sql<AccountEmailRow>`
    UPDATE account_emails SET due_at = ${until}, attempts = attempts + 1
    WHERE id = ANY(ARRAY(
      SELECT id FROM (
        SELECT DISTINCT ON (sender) id, due_at FROM (
          SELECT id, coalesce(account_id, email) AS sender, due_at FROM account_emails
          WHERE kind = ${kind} AND due_at <= ${now} ORDER BY due_at LIMIT ${claimWindow}
        ) due
        WHERE sender <> ALL(${busy}::text[]) ORDER BY sender, due_at
      ) first ORDER BY due_at LIMIT ${limit}
    ))
    -- Again, for the case that another process has claimed it meanwhile.
    AND due_at <= ${now}
    RETURNING *
  `.execute(db)
  return rows
}

/** Notes the link that was made for a reset. */
export async function setLinkOfReset(trx: Trx, id: string, linkId: string): Promise<void> {
  await trx.updateTable('account_emails').set({ link_id: linkId }).where('id', '=', id).execute()
}

/** Ends an email, or moves it to its next attempt. A reset that has ended is deleted: nothing counts it. */
export async function endAttempt(
  trx: Trx,
  { id, kind }: Pick<AccountEmailRow, 'id' | 'kind'>,
  dueAt: Date | null,
): Promise<void> {
  if (kind === 'password_reset' && dueAt === null) {
    await trx.deleteFrom('account_emails').where('id', '=', id).execute()
    return
  }
  await trx.updateTable('account_emails').set({ due_at: dueAt }).where('id', '=', id).execute()
}

/** Deletes emails of all accounts: those done that are older than `doneBefore`, and others older than `before`. */
export async function deleteOldEmails(
  handle: Handle,
  { doneBefore, before }: { doneBefore: Date; before: Date },
): Promise<void> {
  await handle
    .deleteFrom('account_emails')
    .where('created_at', '<', doneBefore)
    .where(({ or, eb }) => or([eb('due_at', 'is', null), eb('created_at', '<', before)]))
    .execute()
}
