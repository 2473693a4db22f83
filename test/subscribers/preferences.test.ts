import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { createBrandService, findBrand } from '../../server/accounts/brand.ts'
import { guardUsedTopic } from '../../server/campaigns/in-use.ts'
import { newId } from '../../server/shared/ids.ts'
import { type PreferencesChange, savePreferences, showPreferences } from '../../server/subscribers/preferences.ts'
import { createSubscriberTopicService } from '../../server/subscribers/topics.ts'
import { createTopicService } from '../../server/topics/service.ts'
import { live } from '../support/scope.ts'
import { createWorld, type World } from '../support/worlds/audiences.ts'

let world: World
let audienceId: string
let offers: string
let news: string

beforeAll(async () => {
  world = await createWorld()
  const { db, account, audiences } = world
  audienceId = (await audiences.create(db, live(account), { name: 'News' })).id
  const topics = createTopicService({ ...world, guardUsed: guardUsedTopic })
  offers = (await topics.create(db, account, { name: 'Offers', default: 'opt_out' })).id
  news = (await topics.create(db, account, { name: 'News', description: 'Monthly.', default: 'opt_in' })).id
})
afterAll(() => world.end())
beforeEach(() => world.emitted())

let counter = 0
async function newPerson() {
  const { db, account, contacts } = world
  const email = `person-${++counter}@example.com`
  const { subscriberId } = await contacts.add(db, live(account), audienceId, { email, firstName: 'Ada' })
  await world.emitted()
  return { id: subscriberId, email }
}

const linkOf = (address: string, accountId = world.account, topicId?: string) => ({
  emailId: newId('email', world.clock.now()),
  position: 0,
  accountId,
  address,
  topicId,
})
const show = (link: ReturnType<typeof linkOf>) => showPreferences(world.db, link, findBrand)

function save(address: string, change: Partial<PreferencesChange>, accountId = world.account) {
  const whole = {
    firstName: 'Ada',
    lastName: null,
    shown: new Set([offers, news]),
    wanted: new Set([offers]),
    ...change,
  }
  return savePreferences(world.db, world, linkOf(address, accountId), whole)
}

test('the page of a link shows the topics of the account as they are for the person, and changes nothing', async () => {
  const { email } = await newPerson()
  const shown = await show(linkOf(email.toUpperCase(), world.account, offers))

  expect(shown).toMatchObject({ topic: 'Offers', brand: { name: null, accentColor: null, text: null } })
  expect(shown?.preferences).toMatchObject({ firstName: 'Ada', lastName: null, isUnsubscribed: false })
  expect(new Map(shown?.preferences?.topics.map(({ name, isSubscribed }) => [name, isSubscribed]))).toEqual(
    new Map([
      ['Offers', true],
      ['News', false],
    ]),
  )
  expect(await world.db.selectFrom('topic_choices').selectAll().execute()).toEqual([])
  expect(await world.emitted()).toEqual([])
})

test('the page of a link is in the words of the account', async () => {
  const { db, account, stranger } = world
  const brands = createBrandService(world)
  const { email } = await newPerson()
  await brands.update(db, account, { name: 'Acme', accentColor: '#1A73E8' })
  await Promise.all([
    brands.update(db, account, { text: 'Choose.' }),
    brands.update(db, account, { accentColor: null }),
  ])

  const brand = { name: 'Acme', accentColor: null, text: 'Choose.' }
  expect(await brands.get(db, account)).toEqual(brand)
  expect(await brands.get(db, stranger)).toEqual({ name: null, accentColor: null, text: null })
  expect(await show(linkOf(email))).toMatchObject({ brand })
})

test('the page of a link has nothing to choose for an address that is no subscriber’s, of another account, or was deleted', async () => {
  const { db, account, stranger, subscribers } = world
  const { id, email } = await newPerson()

  expect((await show(linkOf('nobody@example.com')))?.preferences).toBeNull()
  expect((await show(linkOf(email, stranger)))?.preferences).toBeNull()
  await subscribers.delete(db, live(account), id)
  expect((await show(linkOf(email)))?.preferences).toBeNull()
  await save(email, { wanted: new Set() })
  expect(await show(linkOf(email, newId('account', world.clock.now())))).toBeNull()
})

const topicsOf = async (id: string) =>
  new Map((await createSubscriberTopicService(world).list(world.db, world.account, id)).map((one) => [one.name, one]))

test('what is saved changes names and topics, and is told of', async () => {
  const { id, email } = await newPerson()
  await save(email, { firstName: 'Augusta', lastName: 'King', wanted: new Set([news]) })

  expect(await world.subscribers.get(world.db, world.account, id)).toMatchObject({
    firstName: 'Augusta',
    lastName: 'King',
  })
  const topics = await topicsOf(id)
  expect([topics.get('Offers')?.subscribed, topics.get('News')?.subscribed]).toEqual([false, true])
  expect((await world.emitted()).map(([type, data]) => [type, Object(data).changes])).toEqual([
    ['contact.updated', ['firstName', 'lastName']],
    ['contact.updated', ['topics']],
  ])
})

test('what is saved leaves topics alone that stay as they are, or were not shown', async () => {
  const { id, email } = await newPerson()
  await save(email, { wanted: new Set([offers]) })
  await save(email, { shown: new Set(), wanted: new Set([news]) })

  const topics = await topicsOf(id)
  expect([...topics.values()].map(({ chosenAt }) => chosenAt)).toEqual([null, null])
  expect(await world.emitted()).toEqual([])
})

test('what is saved has no effect on topics of another account, nor on its people', async () => {
  const { db, stranger, subscribers } = world
  const theirs = await createTopicService({ ...world, guardUsed: guardUsedTopic }).create(db, stranger, {
    name: 'Theirs',
    default: 'opt_in',
  })
  const { id, email } = await newPerson()
  const other = await subscribers.create(db, live(stranger), { email })
  await world.emitted()
  await save(email, { shown: new Set([theirs.id]), wanted: new Set([theirs.id]) })
  await save(email, { firstName: 'Eve', wanted: new Set() }, stranger)

  expect((await topicsOf(id)).get('Offers')?.subscribed).toBe(true)
  expect(await subscribers.get(db, world.account, id)).toMatchObject({ firstName: 'Ada' })
  expect(await subscribers.get(db, stranger, other.id)).toMatchObject({ firstName: 'Eve' })
  const rows = await db.selectFrom('topic_choices').selectAll().where('topic_id', '=', theirs.id).execute()
  expect(rows).toEqual([])
})

test('what is saved changes nothing for somebody who unsubscribed from everything', async () => {
  const { db, account, subscribers } = world
  const { id, email } = await newPerson()
  await subscribers.unsubscribe(db, live(account), id)
  await world.emitted()
  await save(email, { firstName: 'Eve', wanted: new Set([news]) })

  expect(await subscribers.get(db, account, id)).toMatchObject({ firstName: 'Ada', status: 'unsubscribed' })
  expect(await world.emitted()).toEqual([])
  expect((await show(linkOf(email)))?.preferences?.isUnsubscribed).toBe(true)
})
