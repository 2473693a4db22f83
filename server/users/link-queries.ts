import type { Insertable, Selectable } from 'kysely'
import type { Handle, Trx } from '../database/connection.ts'
import type { UserLinksTable } from '../database/tables/users.ts'

export type LinkRow = Selectable<UserLinksTable>

export async function insertLink(trx: Trx, link: Insertable<UserLinksTable>): Promise<void> {
  await trx.insertInto('user_links').values(link).execute()
}

export type FoundLinkRow = LinkRow & { account_name: string | null; email_of_user: string | null }

function links(handle: Handle) {
  return handle
    .selectFrom('user_links')
    .leftJoin('accounts', 'accounts.id', 'user_links.account_id')
    .leftJoin('users', 'users.id', 'user_links.user_id')
    .selectAll('user_links')
    .select(['accounts.name as account_name', 'users.email as email_of_user'])
}

/** Returns the link with this hash. The holder of its token needs no account, so this names none. */
export async function findLinkByHash(handle: Handle, hash: Buffer): Promise<FoundLinkRow | undefined> {
  return links(handle).where('token_hash', '=', hash).executeTakeFirst()
}

/** Returns a link of any account and locks it until the transaction ends. For sending it. */
export async function lockLink(trx: Trx, id: string): Promise<FoundLinkRow | undefined> {
  return links(trx).where('user_links.id', '=', id).forUpdate('user_links').executeTakeFirst()
}

/** Replaces the token of a link: the former one no longer works. */
export async function setTokenHash(trx: Trx, id: string, hash: Buffer): Promise<void> {
  await trx.updateTable('user_links').set({ token_hash: hash }).where('id', '=', id).execute()
}

/** Notes what became of the email with a link, if the link is still there. */
export async function markEmail(
  trx: Trx,
  { link_id }: { link_id: string | null },
  { sent, at }: { sent: boolean; at: Date },
): Promise<void> {
  const changes = sent ? { emailed_at: at } : { email_failed_at: at }
  await trx.updateTable('user_links').set(changes).where('id', '=', link_id).execute()
}

/** Returns true when the user has a link that was made for an email after `since`. */
export async function hasEmailedResetLink(
  trx: Trx,
  { userId, since }: { userId: string; since: Date },
): Promise<boolean> {
  const row = await trx
    .selectFrom('user_links')
    .select('id')
    .where('user_id', '=', userId)
    .where('by_email', '=', true)
    .where('created_at', '>', since)
    .limit(1)
    .executeTakeFirst()
  return row !== undefined
}

/** Deletes the links that went to a user by email. Those of the command line stay: a stranger can ask for an email. */
export async function deleteEmailedResetLinks(trx: Trx, userId: string): Promise<void> {
  await trx.deleteFrom('user_links').where('user_id', '=', userId).where('by_email', '=', true).execute()
}

/** Uses a link up. Returns false when another transaction did so first, or took it back. */
export async function takeLink(trx: Trx, id: string): Promise<boolean> {
  const row = await trx.deleteFrom('user_links').where('id', '=', id).returning('id').executeTakeFirst()
  return row !== undefined
}

/** Deletes the links that reset the password of a user. */
export async function deleteResetLinks(trx: Trx, userId: string): Promise<void> {
  await trx.deleteFrom('user_links').where('user_id', '=', userId).execute()
}

/**
 * Deletes the links for the first user of an account. They are on no list and stand in logs of the first start, so they
 * end when the account has a member.
 */
export async function deleteFirstUserLinks(trx: Trx, accountId: string): Promise<void> {
  await trx.deleteFrom('user_links').where('account_id', '=', accountId).where('kind', '=', 'first_user').execute()
}

/** Counts the invitations of an account that have not expired. */
export async function countInvitations(
  trx: Trx,
  { accountId, now }: { accountId: string; now: Date },
): Promise<number> {
  const { open } = await trx
    .selectFrom('user_links')
    .select(({ fn }) => fn.countAll<string>().as('open'))
    .where('account_id', '=', accountId)
    .where('kind', '=', 'invitation')
    .where('expires_at', '>', now)
    .executeTakeFirstOrThrow()
  return Number(open)
}

/** Returns the invitations of an account that have not expired, newest first, one more than asked for. */
export async function selectInvitations(
  handle: Handle,
  accountId: string,
  { limit, after, now }: { limit: number; after: string | undefined; now: Date },
): Promise<LinkRow[]> {
  return handle
    .selectFrom('user_links')
    .selectAll()
    .where('account_id', '=', accountId)
    .where('kind', '=', 'invitation')
    .where('expires_at', '>', now)
    .$if(after !== undefined, (query) => query.where('id', '<', after ?? ''))
    .orderBy('id', 'desc')
    .limit(limit + 1)
    .execute()
}

/** Deletes an invitation of the account. Returns undefined when it is not one. */
export async function deleteInvitation(
  trx: Trx,
  { accountId, id }: { accountId: string; id: string },
): Promise<LinkRow | undefined> {
  return trx
    .deleteFrom('user_links')
    .where('account_id', '=', accountId)
    .where('id', '=', id)
    .where('kind', '=', 'invitation')
    .returningAll()
    .executeTakeFirst()
}

/** Deletes the invitations of one address to the account. Returns them. */
export async function deleteInvitationsOf(
  trx: Trx,
  { accountId, email }: { accountId: string; email: string },
): Promise<LinkRow[]> {
  return trx
    .deleteFrom('user_links')
    .where('account_id', '=', accountId)
    .where('kind', '=', 'invitation')
    .where('email', '=', email)
    .returningAll()
    .execute()
}

/** Deletes the invitations to the account that a user made. Returns them. */
export async function deleteInvitationsBy(
  trx: Trx,
  { accountId, userId }: { accountId: string; userId: string },
): Promise<LinkRow[]> {
  return trx
    .deleteFrom('user_links')
    .where('account_id', '=', accountId)
    .where('kind', '=', 'invitation')
    .where('created_by', '=', userId)
    .returningAll()
    .execute()
}
