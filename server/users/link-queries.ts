import type { Selectable } from 'kysely'
import type { Handle, Trx } from '../database/connection.ts'
import type { UserLinksTable } from '../database/tables/users.ts'

export type LinkRow = Selectable<UserLinksTable>

export async function insertLink(trx: Trx, link: LinkRow): Promise<void> {
  await trx.insertInto('user_links').values(link).execute()
}

export type FoundLinkRow = LinkRow & { account_name: string | null; email_of_user: string | null }

/** Returns the link with this hash. The holder of its token needs no account, so this names none. */
export async function findLinkByHash(handle: Handle, hash: Buffer): Promise<FoundLinkRow | undefined> {
  return handle
    .selectFrom('user_links')
    .leftJoin('accounts', 'accounts.id', 'user_links.account_id')
    .leftJoin('users', 'users.id', 'user_links.user_id')
    .selectAll('user_links')
    .select(['accounts.name as account_name', 'users.email as email_of_user'])
    .where('token_hash', '=', hash)
    .executeTakeFirst()
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
