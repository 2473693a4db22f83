import { sql } from 'kysely'
import { afterAll, afterEach, beforeEach, expect, test } from 'vitest'
import type { CreateCampaign } from '../../contract/campaign-resource.ts'
import { createRenderer } from '../../server/rendering/renderer.ts'
import { type CampaignWorld, createCampaignWorld } from '../support/worlds/campaigns.ts'

const renderer = createRenderer()
afterAll(() => renderer[Symbol.asyncDispose]())

let world: CampaignWorld
beforeEach(async () => {
  world = await createCampaignWorld(renderer)
})
afterEach(() => world[Symbol.asyncDispose]())

const get = (id: string) => world.campaigns.get(world.db, world.live, id)

async function start(audienceId: string, fields: Partial<CreateCampaign>): Promise<string> {
  const id = await world.draft(audienceId, fields)
  await world.start(id)
  return id
}

const byHand = { winnerBy: 'manual' as const }

/** A subject that is empty for each person here: their first name is Ada or Bob. */
const emptyForAll = '{% if contact.firstName == "Nobody" %}Hello{% endif %}'

test('faults of the content fail the person, with the reason', async () => {
  const audience = await world.addAudience(2)
  const [bad = ''] = await world.addPeople(audience, 1)
  await world.subscribers.update(world.db, world.live, bad, { firstName: 'Bob' })
  const id = await start(audience, {
    subject: '{% if contact.firstName == "Ada" %}Hello{% endif %}',
  })
  await world.deliver()
  const { data } = await world.campaigns.recipients(world.db, world.live, id, { limit: 10, status: 'failed' })
  expect(data).toMatchObject([{ subscriberId: bad, reason: 'The subject is empty.', emailId: null }])
  expect((await get(id)).status).toBe('completed')
})

test('faults of the first 100 people pause the campaign and say why', async () => {
  const id = await start(await world.addAudience(300), { subject: emptyForAll })
  await world.run()
  const campaign = await get(id)
  expect(campaign.status).toBe('paused')
  expect(campaign.statusReason).toMatch(/any of the first \d+ people.*The subject is empty/s)
})

test('faults of all of a few people are told when the campaign has ended', async () => {
  const id = await start(await world.addAudience(2), { subject: emptyForAll })
  await world.deliver()
  const campaign = await get(id)
  expect(campaign).toMatchObject({ status: 'completed', statusReason: expect.stringContaining('for any recipient') })
})

test('faults for everyone refuse to send the campaign, which stays a draft', async () => {
  const id = await world.draft(await world.addAudience(1), {
    content: { text: '{{ contact.email | nosuchfilter }}' },
  })
  await expect(world.campaigns.send(world.db, world.live, id, null)).rejects.toMatchObject({
    code: 'template_fault',
    message: expect.stringContaining('nosuchfilter'),
  })
  expect((await get(id)).status).toBe('draft')
})

/** Has a campaign end, and resumes it whenever it is paused. Returns why it was. */
async function resumeToTheEnd(id: string): Promise<string[]> {
  const reasons: string[] = []
  for (;;) {
    await world.deliver()
    const { status, statusReason } = await get(id)
    if (status !== 'paused') return reasons
    reasons.push(statusReason ?? '')
    await world.campaigns.resume(world.db, world.live, id)
  }
}

test('content that fails for the first 100 people pauses the campaign once, which goes on with the others when it is resumed', async () => {
  const audience = await world.addAudience(450)
  const others = await world.addPeople(audience, 3)
  await sql`UPDATE subscribers SET first_name = 'Bob' WHERE id = ANY(${others}::text[])`.execute(world.db)
  const id = await start(audience, { subject: '{% if contact.firstName == "Bob" %}Hello{% endif %}' })
  expect(await resumeToTheEnd(id)).toEqual([
    expect.stringMatching(/^The content could .* any of the first \d+ people\./),
  ])
  expect(await get(id)).toMatchObject({ status: 'completed', statusReason: null })
  expect(await world.statuses()).toEqual({ failed: 450, handed_over: 3 })
})

test('each variant that fails for its first 100 people pauses the campaign once, which goes on with the others when it is resumed', async () => {
  const variants = [{ name: 'Good' }, { name: 'Bad', subject: emptyForAll }, { name: 'Worse', subject: emptyForAll }]
  const id = await start(await world.addAudience(900), { abTest: { ...byHand, share: 100, variants } })
  const reasons = await resumeToTheEnd(id)
  for (const name of ['Bad', 'Worse']) {
    const told = reasons
      .join(' ')
      .split(`The content of the variant "${name}" could not be rendered for any of the first `)
    expect(told).toHaveLength(2)
    expect(told[1]).toMatch(/^[12]\d\d people\. The last fault: The subject is empty\./)
  }
  expect(reasons.join(' ')).not.toContain('"Good"')
  expect((await get(id)).status).toBe('completed')
  const { rows } = await sql<{ variant: number; status: string }>`
    SELECT DISTINCT variant, status FROM campaign_recipients WHERE campaign_id = ${id} ORDER BY variant
  `.execute(world.db)
  expect(rows).toEqual([
    { variant: 0, status: 'handed_over' },
    { variant: 1, status: 'failed' },
    { variant: 2, status: 'failed' },
  ])
})

test('a variant that failed for everybody cannot be chosen as the winner, and the rest gets another one', async () => {
  const variants = [{ name: 'Good' }, { name: 'Bad', subject: emptyForAll }]
  const id = await start(await world.addAudience(100), { abTest: { ...byHand, share: 60, variants } })
  await world.deliver()
  const choose = (name: string) => world.campaigns.chooseWinner(world.db, world.live, id, name)
  await expect(choose('Bad')).rejects.toMatchObject({
    code: 'campaign_state',
    message: expect.stringMatching(/"Bad" to the rest: it could not be rendered for any of the \d+ people/),
  })
  await choose('Good')
  await world.deliver()
  expect(await get(id)).toMatchObject({ status: 'completed', abTest: { winner: 'Good' } })
})

test('a variant that fails for hundreds, and not for all, pauses nothing', async () => {
  const audience = await world.addAudience(100)
  await sql`UPDATE subscribers SET first_name = 'Bob'`.execute(world.db)
  await world.addPeople(audience, 500)
  const variants = [
    { name: 'Good' },
    { name: 'For Bob', subject: '{% if contact.firstName == "Bob" %}Hello{% endif %}' },
  ]
  const id = await start(audience, { abTest: { ...byHand, share: 100, variants } })
  await world.deliver()
  const { status } = await get(id)
  expect(status).toBe('completed')
  expect((await world.campaigns.statistics(world.db, world.live, id)).failed).toBeGreaterThan(150)
})
