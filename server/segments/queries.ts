import { type Selectable, sql } from 'kysely'
import type { SegmentCondition } from '../../contract/segment-conditions.ts'
import type { Handle, Trx } from '../database/connection.ts'
import type { SegmentsTable } from '../database/tables/segments.ts'

export type SegmentRow = Selectable<SegmentsTable>

type NewSegment = {
  id: string
  accountId: string
  audienceId: string
  name: string
  conditions: SegmentCondition
  at: Date
}

/** @param segment.audienceId An audience that is held in the transaction, so that it is not deleted meanwhile. */
export async function insertSegment(trx: Trx, segment: NewSegment): Promise<SegmentRow> {
  return trx
    .insertInto('segments')
    .values({
      account_id: segment.accountId,
      id: segment.id,
      audience_id: segment.audienceId,
      name: segment.name,
      conditions: JSON.stringify(segment.conditions),
      created_at: segment.at,
      updated_at: segment.at,
    })
    .returningAll()
    .executeTakeFirstOrThrow()
}

function oneSegment(handle: Handle, accountId: string, id: string) {
  return handle.selectFrom('segments').selectAll().where('account_id', '=', accountId).where('id', '=', id)
}

export async function findSegment(handle: Handle, accountId: string, id: string): Promise<SegmentRow | undefined> {
  return oneSegment(handle, accountId, id).executeTakeFirst()
}

/** Locks a segment for a change, or to delete it: that waits for those who hold it. */
export async function lockSegment(
  trx: Trx,
  accountId: string,
  id: string,
  change: 'update' | 'delete' = 'update',
): Promise<SegmentRow | undefined> {
  const segment = oneSegment(trx, accountId, id)
  return (change === 'delete' ? segment.forUpdate() : segment.forNoKeyUpdate()).executeTakeFirst()
}

/** Returns those segments of an audience that are among `ids`, in any order. */
export async function findSegmentsOf(
  handle: Handle,
  accountId: string,
  { audienceId, ids }: { audienceId: string; ids: readonly string[] },
): Promise<SegmentRow[]> {
  return handle
    .selectFrom('segments')
    .selectAll()
    .where('account_id', '=', accountId)
    .where('audience_id', '=', audienceId)
    .where('id', '=', sql<string>`ANY(${ids}::text[])`)
    .execute()
}

/** @param page.after Id of the last row of the page before. Newest first. */
export async function selectSegments(
  handle: Handle,
  accountId: string,
  page: { audienceId?: string | undefined; after?: string | undefined; limit: number },
): Promise<SegmentRow[]> {
  let query = handle.selectFrom('segments').selectAll().where('account_id', '=', accountId)
  if (page.audienceId !== undefined) query = query.where('audience_id', '=', page.audienceId)
  if (page.after !== undefined) query = query.where('id', '<', page.after)
  return query.orderBy('id', 'desc').limit(page.limit).execute()
}

export async function updateSegment(
  trx: Trx,
  accountId: string,
  { id, name, conditions, at }: Pick<NewSegment, 'id' | 'name' | 'conditions' | 'at'>,
): Promise<SegmentRow> {
  return trx
    .updateTable('segments')
    .set({ name, conditions: JSON.stringify(conditions), updated_at: at })
    .where('account_id', '=', accountId)
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirstOrThrow()
}

/** Deletes a locked segment. */
export async function deleteSegment(trx: Trx, accountId: string, id: string): Promise<void> {
  await trx.deleteFrom('segments').where('account_id', '=', accountId).where('id', '=', id).execute()
}

/** Locks those segments of an audience that are among `ids`, so that none is deleted meanwhile. Returns their ids. */
export async function holdSegmentsOf(
  trx: Trx,
  accountId: string,
  { audienceId, ids }: { audienceId: string; ids: readonly string[] },
): Promise<Set<string>> {
  const rows = await trx
    .selectFrom('segments')
    .select('id')
    .where('account_id', '=', accountId)
    .where('audience_id', '=', audienceId)
    .where('id', '=', sql<string>`ANY(${ids}::text[])`)
    .orderBy('id')
    .forKeyShare()
    .execute()
  return new Set(rows.map(({ id }) => id))
}
