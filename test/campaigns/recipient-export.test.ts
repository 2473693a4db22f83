import { afterAll, afterEach, beforeEach, expect, test } from 'vitest'
import { createRenderer } from '../../server/rendering/renderer.ts'
import { type CampaignWorld, createCampaignWorld } from '../support/worlds/campaigns.ts'

const renderer = createRenderer()
afterAll(() => renderer[Symbol.asyncDispose]())

let world: CampaignWorld
beforeEach(async () => {
  world = await createCampaignWorld(renderer)
})
afterEach(() => world[Symbol.asyncDispose]())

async function exported(id: string): Promise<string[][]> {
  let text = ''
  for await (const piece of await world.campaigns.exportRecipients(world.db, world.live, id)) text += piece
  const lines = text.split('\r\n')
  expect(lines.pop()).toBe('')
  return lines.map((line) => line.split(','))
}

test('an export of recipients has each recipient once, with what became of them, and makes formulas harmless', async () => {
  const { db, live, account } = world
  const audience = await world.addAudience(0)
  await world.properties.create(db, account, { key: 'plan', type: 'string', fallback: 'free' })
  const add = (email: string, firstName: string, properties = {}) =>
    world.contacts.add(db, live, audience, { email, firstName, properties })
  await add('a@example.org', '=SUM(A1)', { plan: '@pro' })
  await add('b@example.org', 'Bob')
  const left = await add('c@example.org', 'Cy')
  const deleted = await add('d@example.org', 'Di')
  const id = await world.draft(audience, { subject: '{% if contact.firstName != "Bob" %}Hello{% endif %}' })
  await world.start(id)
  await world.turn()
  await world.contacts.remove(db, live, { audienceId: audience, subscriberId: left.subscriberId })
  await world.subscribers.delete(db, live, deleted.subscriberId)
  await world.run()
  const emailIds = (await world.db.selectFrom('emails').select('id').execute()).map((row) => row.id)
  const [head, ada, bob, ...others] = await exported(id)
  expect(head?.join()).toBe('email,first_name,last_name,recipient_status,reason,email_status,email_id,variant,plan')
  expect(ada).toEqual(['a@example.org', "'=SUM(A1)", '', 'queued', '', 'queued', emailIds[0], '', "'@pro"])
  expect(bob).toEqual(['b@example.org', 'Bob', '', 'failed', 'The subject is empty.', '', '', '', ''])
  expect(others).toEqual([
    ['c@example.org', 'Cy', '', 'skipped', 'left', '', '', '', ''],
    ['', '', '', 'skipped', 'left', '', '', '', ''],
  ])
})

test('an export of recipients goes on page by page, and shows who waits of a canceled campaign as canceled', async () => {
  const audience = await world.addAudience(2_050)
  const id = await world.draft(audience)
  await world.start(id)
  await world.turn()
  await world.campaigns.cancel(world.db, world.live, id)
  const [, ...rows] = await exported(id)
  expect(rows).toHaveLength(2_050)
  expect(new Set(rows.map(([email]) => email)).size).toBe(2_050)
  expect(new Set(rows.map(([, , , status]) => status))).toEqual(new Set(['canceled']))
})

test('an export of recipients is refused for a campaign of another account, or of the other mode', async () => {
  const id = await world.draft(await world.addAudience(1))
  const strangers = { ...world.live, accountId: world.stranger }
  await expect(world.campaigns.exportRecipients(world.db, strangers, id)).rejects.toMatchObject({ code: 'not_found' })
  await expect(world.campaigns.exportRecipients(world.db, world.test, id)).rejects.toMatchObject({ code: 'not_found' })
})
