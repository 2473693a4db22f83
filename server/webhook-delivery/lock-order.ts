import { type RawBuilder, sql } from 'kysely'

/*
 * Statements that change several rows lock them in one order, so that they never deadlock: webhooks by id, then
 * deliveries by id, then the jobs of those deliveries. Statements that change a job without its delivery, to claim it
 * or to keep its claim alive, skip locked rows. pg-boss does not when it ends claims, for example lapsed ones: such a
 * statement can deadlock with one of ours, and PostgreSQL then rolls one of them back.
 */

/** Returns a subquery that locks deliveries in that order and yields their ids. `ids` is an array expression. */
export function lockedDeliveries(ids: RawBuilder<unknown>): RawBuilder<{ id: string }> {
  return sql`SELECT id FROM deliveries WHERE id = ANY(${ids}::text[]) ORDER BY id FOR NO KEY UPDATE`
}
