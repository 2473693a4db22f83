import { afterAll, afterEach, beforeEach, expect, test } from 'vitest'
import { exampleId } from '../../contract/ids.ts'
import { createRenderer } from '../../server/rendering/renderer.ts'
import { DomainError } from '../../server/shared/errors.ts'
import { type CampaignWorld, createCampaignWorld } from '../support/worlds/campaigns.ts'

const renderer = createRenderer()
afterAll(() => renderer[Symbol.asyncDispose]())

let world: CampaignWorld
let audience: string
beforeEach(async () => {
  world = await createCampaignWorld(renderer)
  audience = await world.addAudience(0)
  const { db, account, properties } = world
  await properties.create(db, account, { key: 'plan', type: 'string', fallback: 'free' })
  await properties.create(db, account, { key: 'city', type: 'string' })
  await properties.create(db, account, { key: 'seats', type: 'number' })
  await properties.create(db, account, { key: 'isOwner', type: 'boolean', fallback: false })
  await properties.create(db, account, { key: 'since', type: 'date' })
})
afterEach(() => world[Symbol.asyncDispose]())

const text =
  '{{ contact.firstName }} {{ properties.plan }} {{ properties.city | default: "nowhere" }} {{ properties.seats | default: 1 }} ' +
  '{% if properties.isOwner %}owner{% else %}guest{% endif %} {{ properties.since | date: "%d/%m/%Y" | default: "never" }}'

async function texts(): Promise<string[]> {
  const rows = await world.db
    .selectFrom('emails as e')
    .innerJoin('email_contents as c', 'c.email_id', 'e.id')
    .innerJoin('email_recipients as r', 'r.email_id', 'e.id')
    .select(['c.text'])
    .orderBy('r.address')
    .execute()
  return rows.map((row) => row.text ?? '')
}

const values = { plan: 'pro', city: 'Paris', seats: 5, isOwner: true, since: '2025-03-09' }

test('a message has the properties of each person, fallbacks, and the defaults of Liquid', async () => {
  const { db, live } = world
  await world.contacts.add(db, live, audience, { email: 'a@example.org', firstName: 'Ada', properties: values })
  await world.contacts.add(db, live, audience, { email: 'b@example.org', firstName: 'Bob', properties: { seats: 0 } })
  await world.contacts.add(db, live, audience, { email: 'c@example.org', firstName: 'Cy' })
  await world.start(await world.draft(audience, { content: { text } }))
  await world.run()
  expect(await texts()).toEqual([
    'Ada pro Paris 5 owner 09/03/2025',
    'Bob free nowhere 0 guest never',
    'Cy free nowhere 1 guest never',
  ])
})

test('a message has nothing of a property that was deleted, and nothing of another account', async () => {
  const { db, live, stranger } = world
  await world.properties.create(db, stranger, { key: 'secret', type: 'string', fallback: 'theirs' })
  await world.contacts.add(db, live, audience, { email: 'a@example.org', properties: values })
  await world.properties.delete(db, live, 'city')
  const content = { text: '[{{ properties.city }}{{ properties.secret }}] {{ properties.plan }}' }
  await world.start(await world.draft(audience, { content }))
  await world.run()
  expect(await texts()).toEqual(['[] pro'])
})

test('a message is rendered with the most that people, properties and variables may be', async () => {
  const { db, live, account } = world
  const key = (n: number) => `long${n}`
  const long = '"'.repeat(500)
  for (let n = 0; n < 95; n++) {
    await world.properties.create(db, account, { key: key(n), type: 'string', fallback: long })
  }
  const own = Object.fromEntries(Array.from({ length: 15 }, (_, n) => [key(n), '€'.repeat(300)]))
  await world.contacts.add(db, live, audience, { email: 'a@example.org', properties: own })
  const variables = { long: '"'.repeat(8_000) }
  const content = { text: '{{ long | size }} {{ properties.long0 | size }} {{ properties.long94 | size }}' }
  await world.start(await world.draft(audience, { content, variables }))
  await world.run()
  expect(await texts()).toEqual(['8000 300 500'])
})

test('a test email is rendered as the person that is named, with the link of the address that gets it', async () => {
  const { db, live } = world
  const person = await world.subscribers.create(db, live, {
    email: 'ada@example.org',
    firstName: 'Ada',
    lastName: 'Lovelace',
    properties: values,
  })
  const content = { text: `${text} {{ contact.email }} {{ contact.id }} {{ account.name }} {{ unsubscribeUrl }}` }
  const id = await world.draft(audience, { content })
  const [emailId = ''] = await world.campaigns.test(db, live, id, {
    to: ['Me <me@shop.test>'],
    subscriberId: person.id,
  })
  const url = world.means.unsubscribeUrl({ emailId, position: 0, accountId: world.account, address: 'me@shop.test' })
  expect(await texts()).toEqual([`Ada pro Paris 5 owner 09/03/2025 ada@example.org ${person.id} Ours ${url}`])
  expect(await world.written()).toEqual(['me@shop.test'])
})

test('a test email has the name and address of its recipient, and fallbacks, when no person is named', async () => {
  const id = await world.draft(audience, { content: { text: `${text} {{ contact.email }}{{ contact.id }}` } })
  await world.campaigns.test(world.db, world.live, id, { to: ['Me <me@shop.test>'] })
  expect(await texts()).toEqual(['Me free nowhere 1 guest never me@shop.test'])
})

test('a test email is refused for a person who is not there, or of another account', async () => {
  const theirs = await world.subscribers.create(
    world.db,
    { ...world.live, accountId: world.stranger },
    {
      email: 'theirs@example.org',
    },
  )
  const id = await world.draft(audience)
  for (const subscriberId of [exampleId('subscriber'), theirs.id]) {
    const error = await world.campaigns
      .test(world.db, world.live, id, { to: ['me@shop.test'], subscriberId })
      .catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(DomainError)
    expect(error).toMatchObject({
      code: 'rule_violation',
      details: [{ path: 'body.subscriberId', message: 'must be a subscriber of the account' }],
    })
  }
  expect(await world.written()).toEqual([])
})
