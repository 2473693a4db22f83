import { sql } from 'kysely'
import { afterAll, afterEach, beforeEach, expect, test } from 'vitest'
import { createRenderer } from '../../server/rendering/renderer.ts'
import { type CampaignWorld, createCampaignWorld } from '../support/worlds/campaigns.ts'

/*
 * Each step of a campaign is one transaction: recipients, their emails and jobs, the counts of the campaign and its
 * events. A kill seldom hits the moment between two writes. Here every table that a step writes refuses once, and nothing
 * of the step may stand: whatever was written before in a transaction of its own is seen.
 */

const renderer = createRenderer()
afterAll(() => renderer[Symbol.asyncDispose]())

let world: CampaignWorld
let id: string
beforeEach(async () => {
  world = await createCampaignWorld(renderer)
  id = await world.draft(await world.addAudience(3))
  await world.start(id)
  await sql`
    CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN RAISE EXCEPTION 'refused by the test, in %', TG_ARGV[0]; END $$
  `.execute(world.db)
})
afterEach(() => world[Symbol.asyncDispose]())

const tables = ['campaigns', 'campaign_recipients', 'emails', 'email_recipients', 'pgboss.job', 'events'] as const
type Table = (typeof tables)[number]

/** A claim of a worker is not part of a step. */
const ofRow = (row: string) => sql.raw(`to_jsonb(${row}) - 'due_at'`)

/** Returns the rows of the tables, as another connection sees them. */
async function standing(): Promise<Record<string, unknown>> {
  const all: Record<string, unknown> = {}
  for (const table of tables) {
    const { rows } = await sql`SELECT ${ofRow('t')} AS row FROM ${sql.table(table)} t ORDER BY 1`.execute(world.db)
    all[table] = rows
  }
  return all
}

/** Has a table refuse every change of what it holds while `work` is done. */
async function refusing(table: Table, work: () => Promise<unknown>): Promise<void> {
  const isChange = sql`WHEN (${ofRow('OLD')} IS DISTINCT FROM ${ofRow('NEW')})`
  const on = sql`ON ${sql.table(table)} FOR EACH ROW`
  await sql`CREATE TRIGGER refuses BEFORE INSERT OR DELETE ${on} EXECUTE FUNCTION refuse(${sql.lit(table)})`.execute(
    world.db,
  )
  await sql`
    CREATE TRIGGER refuses_change BEFORE UPDATE ${on} ${isChange} EXECUTE FUNCTION refuse(${sql.lit(table)})
  `.execute(world.db)
  await work()
  for (const trigger of ['refuses', 'refuses_change']) {
    await sql`DROP TRIGGER ${sql.id(trigger)} ON ${sql.table(table)}`.execute(world.db)
  }
}

/** One turn, whoever had the last one. */
async function turn(): Promise<void> {
  const dueAt = world.time.clock.now()
  await world.db.updateTable('campaigns').set({ due_at: dueAt }).where('due_at', 'is not', null).execute()
  await world.turn()
}

const turns = (count: number) => async () => {
  for (let n = 0; n < count; n++) await turn()
}
const handedOver = async () => {
  await turns(2)()
  await world.handOver()
}
const act = (what: 'pause' | 'cancel') => () => world.campaigns[what](world.db, world.live, id)

type Step = { before: () => Promise<unknown>; step: () => Promise<unknown>; writes: readonly Table[] }

const steps: [string, Step][] = [
  ['listing', { before: turns(0), step: turn, writes: ['campaign_recipients', 'campaigns', 'events'] }],
  [
    'a batch',
    {
      before: turns(1),
      step: turn,
      writes: ['emails', 'email_recipients', 'pgboss.job', 'campaign_recipients', 'campaigns'],
    },
  ],
  [
    'counting first attempts, and completing',
    { before: handedOver, step: turn, writes: ['campaign_recipients', 'campaigns', 'events'] },
  ],
  [
    'pausing',
    {
      before: turns(2),
      step: act('pause'),
      writes: ['campaigns', 'emails', 'email_recipients', 'pgboss.job', 'campaign_recipients'],
    },
  ],
  [
    'canceling',
    {
      before: turns(2),
      step: act('cancel'),
      writes: ['campaigns', 'emails', 'email_recipients', 'pgboss.job', 'campaign_recipients'],
    },
  ],
]

test.each(steps)(
  '%s stands whole or not at all, whichever of its writes fails',
  async (_, { before, step, writes }) => {
    await before()
    const stood = await standing()
    for (const table of writes) {
      await refusing(table, () => expect(step()).rejects.toThrow(`refused by the test, in ${table}`))
      expect(await standing(), `after ${table} refused`).toEqual(stood)
    }
    await step()
    const stands = await standing()
    // The step changes exactly the tables in `writes`: a table that is forgotten there is found.
    expect(tables.filter((table) => JSON.stringify(stands[table]) !== JSON.stringify(stood[table])).toSorted()).toEqual(
      writes.toSorted(),
    )
  },
)
