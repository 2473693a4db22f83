import { sql } from 'kysely'
import { afterAll, afterEach, beforeEach, expect, test } from 'vitest'
import { claimCampaigns } from '../../server/campaigns/engine-queries.ts'
import { hasWaitingEmails } from '../../server/campaigns/queries.ts'
import { createRenderer } from '../../server/rendering/renderer.ts'
import { type CampaignWorld, createCampaignWorld } from '../support/worlds/campaigns.ts'

const renderer = createRenderer()
afterAll(() => renderer[Symbol.asyncDispose]())

let world: CampaignWorld
beforeEach(async () => {
  world = await createCampaignWorld(renderer)
})
afterEach(() => world[Symbol.asyncDispose]())

/** Recipients in the table by campaign. */
async function stored(): Promise<Record<string, number>> {
  const rows = await world.db
    .selectFrom('campaign_recipients')
    .select(['campaign_id', ({ fn }) => fn.countAll<string>().as('count')])
    .groupBy('campaign_id')
    .execute()
  return Object.fromEntries(rows.map((row) => [row.campaign_id, Number(row.count)]))
}

async function canceled(audience: string): Promise<string> {
  const id = await world.draft(audience)
  await world.start(id)
  while ((await world.campaigns.get(world.db, world.live, id)).status === 'scheduled') await world.turn()
  await world.campaigns.cancel(world.db, world.live, id)
  return id
}

const notFound = { code: 'not_found' }

test('a campaign is gone at once, and its recipients go in steps, after a crash too', async () => {
  const { db, live, campaigns } = world
  const audience = await world.addAudience(20_010)
  const other = await canceled(audience)
  const id = await canceled(audience)
  await campaigns.delete(db, live, id)
  await expect(campaigns.get(db, live, id)).rejects.toMatchObject(notFound)
  await expect(campaigns.recipients(db, live, id, { limit: 10 })).rejects.toMatchObject(notFound)
  await expect(campaigns.exportRecipients(db, live, id)).rejects.toMatchObject(notFound)
  await expect(campaigns.statistics(db, live, id)).rejects.toMatchObject(notFound)
  await expect(campaigns.delete(db, live, id)).rejects.toMatchObject(notFound)
  await expect(campaigns.duplicate(db, live, id)).rejects.toMatchObject(notFound)
  expect((await campaigns.list(db, live, { limit: 10 })).data.map((one) => one.id)).toEqual([other])
  const left: number[] = []
  for (;;) {
    left.push((await stored())[id] ?? 0)
    if ((await world.turn()) > 0) continue
    break
  }
  expect(left).toEqual([20_010, 10_010, 10, 0])
  expect(await stored()).toEqual({ [other]: 20_010 })
  expect(await db.selectFrom('campaigns').select('id').execute()).toEqual([{ id: other }])
})

test('what a process that died had in hand is deleted by another one', async () => {
  const id = await canceled(await world.addAudience(10))
  await world.campaigns.delete(world.db, world.live, id)
  expect(await claimCampaigns(world.db, 10, 30_000)).toHaveLength(1)
  expect(await world.turn()).toBe(0)
  await world.time.advance(30_000)
  await world.turn()
  expect(await stored()).toEqual({})
})

test('a draft is deleted with the request', async () => {
  const id = await world.draft(await world.addAudience(1))
  await world.campaigns.delete(world.db, world.live, id)
  expect(await world.db.selectFrom('campaigns').select('id').execute()).toEqual([])
  expect(await world.turn()).toBe(0)
})

test('whether emails of a campaign wait is read of its own emails, however many of others do, without statistics', async () => {
  const { db, account } = world
  await sql`
    INSERT INTO emails (id, account_id, mode, status, sender, subject, message_id, created_at, updated_at, campaign_id)
    SELECT 'email_' || n, ${account}, 'live', CASE WHEN n <= 10 THEN 'delivered' ELSE 'queued' END, 'a@b.test', 'Hi',
      n, now(), now(), CASE WHEN n <= 10 THEN 'cmp_ours' ELSE 'cmp_other' END
    FROM generate_series(1, 2000) AS n
  `.execute(db)
  const plans: string[] = []
  const explained = db.withPlugin({
    transformQuery: ({ node }) =>
      node.kind === 'RawNode'
        ? { ...node, sqlFragments: [`EXPLAIN ANALYZE ${node.sqlFragments[0]}`, ...node.sqlFragments.slice(1)] }
        : node,
    async transformResult({ result }) {
      plans.push(...result.rows.map((row) => String(row['QUERY PLAN'])))
      return { ...result, rows: [] }
    },
  })
  const waits = (id: string) => hasWaitingEmails(db, { accountId: account, id })
  expect([await waits('cmp_ours'), await waits('cmp_other')]).toEqual([false, true])
  await hasWaitingEmails(explained, { accountId: account, id: 'cmp_ours' })
  expect(plans.join('\n')).toMatch(/Index Scan using emails_by_campaign .*actual.* rows=10[. ]/)
})
