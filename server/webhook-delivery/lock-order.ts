import { type RawBuilder, sql } from 'kysely'

/*
 * Statements that change several rows lock them in one order, so that no two of them wait for each other: webhooks by
 * their ids, then deliveries by their ids, then the jobs of those deliveries. Who changes a job without its delivery,
 * to keep a claim alive or to claim, passes over what is locked. pg-boss itself does not when it ends claims, lapsed ones
 * for instance: such a statement can meet one of ours, and PostgreSQL undoes one of them.
 */

/** A subquery that locks deliveries in that order, and yields their ids. `ids` is an array of them. */
export function lockedDeliveries(ids: RawBuilder<unknown>): RawBuilder<{ id: string }> {
  return sql`SELECT id FROM deliveries WHERE id = ANY(${ids}::text[]) ORDER BY id FOR NO KEY UPDATE`
}
