import { createHash } from 'node:crypto'
import { sql } from 'kysely'
import { afterAll, expect, test } from 'vitest'
import { listRecipients } from '../../server/campaigns/engine-queries.ts'
import { createRenderer } from '../../server/rendering/renderer.ts'
import { createCampaignWorld } from '../support/worlds/campaigns.ts'

const renderer = createRenderer()
const world = await createCampaignWorld(renderer)
afterAll(async () => {
  await world[Symbol.asyncDispose]()
  await renderer[Symbol.asyncDispose]()
})

type Test = { share: number; count: number }

/** The group of a person, computed without PostgreSQL. Null: the rest. */
function groupOf(campaignId: string, subscriberId: string, { share, count }: Test) {
  const digest = createHash('sha256').update(`${campaignId}/${subscriberId}`).digest()
  const place = Number((BigInt(digest.readUIntBE(0, 6)) * BigInt(100 * count)) >> 48n)
  return place < share * count ? place % count : null
}

/** Lists the people of an audience for a campaign that tests variants, in steps. Returns the group of each. */
async function groupsOf(audienceId: string, { share, count }: Test) {
  const variants = Array.from({ length: count }, (_, number) => ({ name: `v${number}`, subject: null }))
  const id = await world.draft(audienceId, { abTest: { share, winnerBy: 'manual', variants } })
  const row = await world.db.selectFrom('campaigns').selectAll().where('id', '=', id).executeTakeFirstOrThrow()
  const campaign = { ...row, listed_at: world.time.clock.now() }
  const options = { limit: 3_000, condition: sql<boolean>`true`, times: null }
  const list = (from: string) =>
    world.db.transaction().execute((trx) => listRecipients(trx, { ...campaign, listed_to: from }, options))
  const inTest = new Array<number>(count).fill(0)
  for (let from: string | null = ''; from !== null; ) {
    const listed = await list(from)
    for (const [number, more] of listed.inTest.entries()) inTest[number] = (inTest[number] ?? 0) + more
    from = listed.last
  }
  const rows = await world.db
    .selectFrom('campaign_recipients')
    .select(['subscriber_id', 'variant'])
    .where('campaign_id', '=', id)
    .orderBy('subscriber_id')
    .execute()
  return { id, list, inTest, rows }
}

const people = 8_000
const audience = await world.addAudience(people)

test.each([
  { share: 20, count: 2 },
  { share: 33, count: 5 },
  { share: 1, count: 3 },
  { share: 100, count: 4 },
])('a share of $share % with $count variants is even, and follows from the ids alone', async ({ share, count }) => {
  const { id, list, inTest, rows } = await groupsOf(audience, { share, count })
  expect(rows).toHaveLength(people)
  const wrong = rows.filter(({ subscriber_id: one, variant }) => variant !== groupOf(id, one, { share, count }))
  expect(wrong).toEqual([])
  const sizes = Array.from({ length: count }, (_, n) => rows.filter(({ variant }) => variant === n).length)
  expect(inTest).toEqual(sizes)
  // As far from what is expected as chance makes it: within 5 standard deviations.
  const chance = share / 100 / count
  const deviation = Math.sqrt(people * chance * (1 - chance))
  for (const size of sizes) expect(Math.abs(size - people * chance)).toBeLessThan(5 * deviation)
  // Listing them again, as after a crash, adds no row and changes none.
  expect(await list('')).toMatchObject({ count: 0, inTest: sizes.map(() => 0) })
})

test('who is in one test is not more likely in the next', async () => {
  const small = await world.addAudience(2_000)
  const [one, other] = [await groupsOf(small, { share: 50, count: 2 }), await groupsOf(small, { share: 50, count: 2 })]
  const same = one.rows.filter(({ variant }, index) => variant === other.rows[index]?.variant).length
  // A quarter is the rest of both, and a sixteenth has each variant in both: 750, within 5 standard deviations.
  expect(Math.abs(same - 750)).toBeLessThan(5 * Math.sqrt(2_000 * 0.375 * 0.625))
})

test('without a test nobody has a group', async () => {
  const id = await world.draft(await world.addAudience(3))
  await world.start(id)
  await world.run()
  const { rows } = await sql<{ recipient: number | null; email: number | null }>`
    SELECT r.variant AS recipient, e.variant AS email FROM campaign_recipients r JOIN emails e ON e.id = r.email_id
    WHERE r.campaign_id = ${id}
  `.execute(world.db)
  expect(rows).toEqual(new Array(3).fill({ recipient: null, email: null }))
})
