import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { settleQueued } from '../../server/campaigns/engine-queries.ts'
import { inTransaction, type Trx } from '../../server/database/connection.ts'
import { createRenderer } from '../../server/rendering/renderer.ts'
import { type CampaignWorld, createCampaignWorld } from '../support/worlds/campaigns.ts'

const renderer = createRenderer()
let world: CampaignWorld
beforeAll(async () => {
  world = await createCampaignWorld(renderer)
})
afterAll(async () => {
  await world[Symbol.asyncDispose]()
  await renderer[Symbol.asyncDispose]()
})

const people = 3_000
const queued = 100

async function rowsRead(trx: Trx): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    SELECT (seq_tup_read + idx_tup_fetch)::float8 AS count FROM pg_stat_xact_user_tables
    WHERE relname = 'campaign_recipients'
  `.execute(trx)
  return rows[0]?.count ?? Number.NaN
}

test('counting who was handed over reads these alone, also with statistics from before the campaign was listed', async () => {
  const { db, live } = world
  // The statistics say that the table is empty.
  await sql`ANALYZE campaign_recipients`.execute(db)
  const id = await world.draft(await world.addAudience(people))
  await world.start(id)
  do await world.turn()
  while (((await world.statuses()).queued ?? 0) < queued)
  const handed = await world.handOver()
  await inTransaction(db, async (trx) => {
    // Earlier reads of the session may not have been added up yet.
    const before = await rowsRead(trx)
    const tallies = await settleQueued(trx, { accountId: live.accountId, id })
    expect(tallies).toEqual([{ status: 'handed_over', reason: null, count: handed }])
    // Once as queued, and once to be changed.
    expect((await rowsRead(trx)) - before).toBeLessThanOrEqual(2 * handed)
  })
})
