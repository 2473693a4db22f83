import { type Selectable, sql } from 'kysely'
import type { Handle, Trx } from '../database/connection.ts'
import type { AudiencesTable, ContactsTable, DoubleOptIn } from '../database/tables/people.ts'

export type AudienceRow = Selectable<AudiencesTable>

type AudienceFields = { name: string; description: string | null; doubleOptIn: DoubleOptIn | null }

export async function insertAudience(
  handle: Handle,
  audience: AudienceFields & { id: string; accountId: string; at: Date },
): Promise<AudienceRow> {
  return handle
    .insertInto('audiences')
    .values({
      id: audience.id,
      account_id: audience.accountId,
      name: audience.name,
      description: audience.description,
      double_opt_in: jsonOf(audience.doubleOptIn),
      created_at: audience.at,
      updated_at: audience.at,
    })
    .returningAll()
    .executeTakeFirstOrThrow()
}

function oneAudience(handle: Handle, accountId: string, id: string) {
  return handle.selectFrom('audiences').selectAll().where('account_id', '=', accountId).where('id', '=', id)
}

export async function findAudience(handle: Handle, accountId: string, id: string): Promise<AudienceRow | undefined> {
  return oneAudience(handle, accountId, id).executeTakeFirst()
}

/** Locks an audience for a change or a deletion. */
export async function lockAudience(
  trx: Trx,
  accountId: string,
  id: string,
  purpose: 'change' | 'delete',
): Promise<AudienceRow | undefined> {
  const query = oneAudience(trx, accountId, id)
  return (purpose === 'delete' ? query.forUpdate() : query.forNoKeyUpdate()).executeTakeFirst()
}

/** @param page.after Id of the last row of the page before. Newest first. */
export async function selectAudiences(
  handle: Handle,
  accountId: string,
  page: { after?: string | undefined; limit: number },
): Promise<AudienceRow[]> {
  let query = handle.selectFrom('audiences').selectAll().where('account_id', '=', accountId)
  if (page.after !== undefined) query = query.where('id', '<', page.after)
  return query.orderBy('id', 'desc').limit(page.limit).execute()
}

export async function updateAudience(
  trx: Trx,
  id: string,
  { name, description, doubleOptIn, at }: AudienceFields & { at: Date },
): Promise<AudienceRow> {
  return trx
    .updateTable('audiences')
    .set({ name, description, double_opt_in: jsonOf(doubleOptIn), updated_at: at })
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirstOrThrow()
}

function jsonOf(doubleOptIn: DoubleOptIn | null): string | null {
  return doubleOptIn === null ? null : JSON.stringify(doubleOptIn)
}

export async function deleteAudience(trx: Trx, id: string): Promise<void> {
  await trx.deleteFrom('audiences').where('id', '=', id).execute()
}

/**
 * Deletes the next contacts of an audience and returns their subscribers and statuses. Locks them ordered by
 * subscriber, as all code does that locks several contacts of one audience, which prevents deadlocks.
 *
 * @param page.after Id of the last subscriber of the page before; empty for the first page.
 */
export async function deleteContacts(
  trx: Trx,
  audienceId: string,
  page: { after: string; limit: number },
): Promise<Pick<Selectable<ContactsTable>, 'subscriber_id' | 'status'>[]> {
  const rows = await trx
    .selectFrom('contacts')
    .select(['subscriber_id', 'status'])
    .where('audience_id', '=', audienceId)
    .where('subscriber_id', '>', page.after)
    .orderBy('subscriber_id')
    .limit(page.limit)
    .forUpdate()
    .execute()
  const subscriberIds = rows.map((row) => row.subscriber_id)
  await trx
    .deleteFrom('contacts')
    .where('audience_id', '=', audienceId)
    .where('subscriber_id', '=', sql<string>`ANY(${subscriberIds}::text[])`)
    .execute()
  return rows
}
