import { type RawBuilder, sql } from 'kysely'
import type { Mode } from '../../contract/mode.ts'
import { plainArray } from '../database/arrays.ts'
import type { Trx } from '../database/connection.ts'
import { readAsUsual, readInOrder } from '../database/index-order.ts'
import { executePrepared, prepare } from '../database/prepared.ts'
import { queueNow } from '../queue/queue.ts'
import { type EventKind, keyOfKind, type Looked, type Reservation } from '../webhook-delivery/scheduling/intake.ts'

/*
 * Reads and locks the events of a batch of the fan-out: the first of the outbox, or, where more wait than a batch may
 * look at, the first of one kind after the other. So no event waits behind those of other accounts or receivers.
 */

/** Maximum number of events that one statement looks at. A fan-out takes a few round trips, however many they are. */
const maxEvents = 1_000
/** Maximum number of kinds of a batch that reads by kind. */
const maxKinds = 125
/**
 * Number of events of an account that such a batch may read in any case, or one of each kind if that is more. Where there
 * are few accounts, it reads more of each. The kinds of an account have equal parts of that.
 */
const minShare = 25
/** Before and behind the ids of all events. */
const beforeAll = 'evt_'
const behindAll = 'evt_~'

export type OutboxRow = {
  event_id: string
  account_id: string
  mode: Mode
  type: string
  body: string | null
  traceparent: string | null
}

export type Batch = {
  /** Locked until the transaction ends. In the order of their ids, or by kind. */
  rows: OutboxRow[]
  /** How far it looked, if the caller deals with all rows. */
  looked: Looked
  /** True if some of the events that were looked at stay there, and this process may take them later. */
  rest: boolean
}

/** Takes a batch of events that no other transaction has locked, of each kind no more than its limit. */
export async function takeEvents(
  trx: Trx,
  { reading, limits }: Pick<Reservation, 'reading' | 'limits'>,
): Promise<Batch> {
  return reading.from === 'front' ? takeFirst(trx, limits) : takeByKind(trx, reading.behind, limits)
}

type Limits = Reservation['limits']

/** Takes the first events of the outbox: of one page, or also of the next ones where others have locked most of it. */
async function takeFirst(trx: Trx, limits: Limits): Promise<Batch> {
  const rows: OutboxRow[] = []
  for (let after = beforeAll; ; ) {
    const page = sql`
      SELECT event_id, account_id, mode, type FROM outbox_rows, present
      WHERE event_id > ${after} AND leased_until <= present.now ORDER BY event_id LIMIT ${maxEvents}
    `
    const taken = await take(trx, { name: 'take_from_outbox', page, order: sql`o.event_id`, limits })
    const last = taken.count === maxEvents ? taken.last : null
    rows.push(...taken.rows)
    if (2 * rows.length >= maxEvents || taken.rest || last === null) {
      return { rows, rest: taken.rest, looked: { from: 'front', isAll: last === null } }
    }
    after = last
  }
}

type KindRow = { account_id: string; mode: Mode; type: string }

const kindsWaiting = prepare<KindRow & { behindAll: string; limit: number }, KindRow>({ name: 'kinds_in_outbox' })`
  WITH RECURSIVE present AS MATERIALIZED (SELECT pgboss.job_now() AS now), waiting AS (
    SELECT ${'account_id'}::text COLLATE "C" AS account_id, ${'mode'}::text AS mode, ${'type'}::text AS type
    UNION ALL
    -- From one kind to the next in the index, however many events are in between.
    SELECT following.* FROM waiting CROSS JOIN LATERAL (
      SELECT account_id, mode, type FROM outbox_rows
      WHERE (account_id, mode, type, event_id) > (waiting.account_id, waiting.mode, waiting.type, ${'behindAll'})
        AND leased_until <= (SELECT now FROM present)
      ORDER BY account_id, mode, type, event_id LIMIT 1
    ) following
  )
  SELECT account_id, mode, type FROM waiting OFFSET 1 LIMIT ${'limit'}
`

/** Takes the first events of the next kinds. */
async function takeByKind(trx: Trx, behind: EventKind | null, limits: Limits): Promise<Batch> {
  await readInOrder(trx, {})
  const { accountId = '', mode = '', type = '' } = behind ?? {}
  const kinds = await kindsWaiting(trx, { account_id: accountId, mode: mode as Mode, type, behindAll, limit: maxKinds })
  if (kinds.length === 0) return { rows: [], rest: false, looked: { from: 'kinds', last: null, more: [] } }
  const shares = sharesOf(kinds)
  const page = sql`
    SELECT own.* FROM unnest(
      ${plainArray(kinds.map((kind) => kind.account_id))}::text[], ${plainArray(kinds.map((kind) => kind.mode))}::text[],
      ${plainArray(kinds.map((kind) => kind.type))}::text[], ${plainArray(maximaOf(kinds, shares, limits))}::int[]
    ) AS kind (account_id, mode, type, max) CROSS JOIN present CROSS JOIN LATERAL (
      -- Written so that only the index by kind gives the order.
      SELECT event_id, account_id, mode, type FROM outbox_rows
      WHERE (account_id, mode, type, event_id) > (kind.account_id, kind.mode, kind.type, ${beforeAll})
        AND (account_id, mode, type) <= (kind.account_id, kind.mode, kind.type) AND leased_until <= present.now
      ORDER BY account_id, mode, type, event_id LIMIT kind.max
    ) own LIMIT ${maxEvents}
  `
  const order = sql`o.account_id, o.mode, o.type, o.event_id`
  // The page has no more of a kind than its limit already.
  const { rows, count, byKind } = await take(trx, { name: 'take_by_kind', page, order, limits: [] })
  await readAsUsual(trx, {})
  const more = byKind.filter((own) => own.count >= shareOf(shares, own)).map((own) => own.account_id)
  if (count === maxEvents) {
    // It ends in the middle of the kinds.
    const read = new Set(byKind.map((own) => keyOfKind(kindOf(own))))
    const last = kinds.findLast((kind) => read.has(keyOfKind(kindOf(kind)))) as KindRow
    return { rows, rest: false, looked: { from: 'kinds', last: kindOf(last), more: [...more, last.account_id] } }
  }
  const last = kinds.length === maxKinds ? kinds.at(-1) : undefined
  return { rows, rest: false, looked: { from: 'kinds', last: last === undefined ? null : kindOf(last), more } }
}

export function kindOf({ account_id: accountId, mode, type }: KindRow): EventKind {
  return { accountId, mode, type }
}

/** Returns how many events of each kind of an account may be read, by account. */
function sharesOf(kinds: readonly KindRow[]): Map<string, number> {
  const byAccount = Map.groupBy(kinds, (kind) => kind.account_id)
  const ofAccount = Math.max(minShare, Math.floor(maxEvents / byAccount.size))
  return new Map(Array.from(byAccount, ([id, own]) => [id, Math.max(1, Math.floor(ofAccount / own.length))]))
}

function shareOf(shares: ReadonlyMap<string, number>, { account_id: accountId }: Pick<KindRow, 'account_id'>): number {
  return shares.get(accountId) ?? 0
}

/** Returns how many events of each of these kinds should be read: its share at most. */
function maximaOf(kinds: readonly KindRow[], shares: ReadonlyMap<string, number>, limits: Limits): number[] {
  const limitOf = new Map(limits.map((limit) => [keyOfKind(limit), limit.max]))
  return kinds.map((kind) => Math.min(shareOf(shares, kind), limitOf.get(keyOfKind(kindOf(kind))) ?? Infinity))
}

type Page = {
  rows: OutboxRow[]
  rest: boolean
  /** Number of events that were looked at, and the last of them. */
  count: number
  last: string | null
  /** Number and last event of each kind. */
  byKind: readonly CountedKind[]
}

type CountedKind = KindRow & { count: number; last: string }

type TakenRow = { [Column in keyof OutboxRow]: OutboxRow[Column] | null } & {
  rest: boolean
  by_kind: readonly CountedKind[] | null
}

type PageOptions = {
  /** Of the prepared statement. */
  name: string
  /** Reads the events of the page. */
  page: RawBuilder<unknown>
  /** The order of the rows, which are `o`. */
  order: RawBuilder<unknown>
  limits: Limits
}

/**
 * Locks and reads the events of a page that no other transaction has locked, of each kind no more than its limit.
 * Events that others have locked do not count for `rest`.
 */
async function take(trx: Trx, { name, page, order, limits }: PageOptions): Promise<Page> {
  const statement = sql<TakenRow>`
    WITH present AS MATERIALIZED (SELECT ${queueNow} AS now), page AS MATERIALIZED (${page}), kinds AS MATERIALIZED (
      SELECT l.max, array_agg(p.event_id ORDER BY p.event_id) AS ids
      FROM page p LEFT JOIN unnest(
        ${plainArray(limits.map(({ accountId }) => accountId))}::text[],
        ${plainArray(limits.map(({ mode }) => mode))}::text[],
        ${plainArray(limits.map(({ type }) => type))}::text[],
        ${plainArray(limits.map(({ max }) => max))}::bigint[]
      ) WITH ORDINALITY AS l (account_id, mode, type, max, kind) USING (account_id, mode, type)
      GROUP BY l.kind, l.max
    ), taken AS MATERIALIZED (
      -- Rows that others have locked do not count for the limit.
      SELECT o.* FROM kinds CROSS JOIN LATERAL (
        SELECT event_id, account_id, mode, type FROM outbox_rows
        WHERE event_id = ANY(kinds.ids) AND leased_until <= (SELECT now FROM present)
        ORDER BY event_id LIMIT kinds.max FOR UPDATE SKIP LOCKED
      ) o
    ), looked AS (
      SELECT coalesce(bool_or(cardinality(ids) > max AND (max = 0 OR EXISTS (SELECT FROM taken))), false) AS rest,
        (SELECT jsonb_agg(to_jsonb(own))
        FROM (SELECT account_id, mode, type, count(*), max(event_id) AS last FROM page GROUP BY 1, 2, 3) own) AS by_kind
      FROM kinds
    )
    SELECT looked.rest, o.event_id, o.account_id, o.mode, o.type, e.body, e.traceparent,
      -- In the first row only.
      CASE WHEN o.event_id IS NOT DISTINCT FROM (SELECT min(event_id) FROM taken) THEN looked.by_kind END AS by_kind
    FROM looked LEFT JOIN taken o ON true
    -- OFFSET 0 makes the planner look up each event by its primary key, whatever the statistics say.
    LEFT JOIN LATERAL (SELECT body, traceparent FROM events WHERE id = o.event_id OFFSET 0) e ON true
    ORDER BY ${order}
  `
  const found = await executePrepared(trx, { name }, statement)
  // One row without an event, if there is none.
  const byKind = found.find(({ by_kind }) => by_kind !== null)?.by_kind ?? []
  return {
    rows: found.filter((row): row is TakenRow & OutboxRow => row.event_id !== null),
    rest: found[0]?.rest ?? false,
    count: byKind.reduce((sum, { count }) => sum + count, 0),
    last: byKind.map(({ last }) => last).reduce((one, other) => (one > other ? one : other), '') || null,
    byKind,
  }
}
