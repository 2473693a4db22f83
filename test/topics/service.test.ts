import { sql } from 'kysely'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { exampleId } from '../../contract/ids.ts'
import { maxTopics } from '../../contract/topics.ts'
import { guardUsedTopic } from '../../server/campaigns/in-use.ts'
import { newId } from '../../server/shared/ids.ts'
import { createSubscriberTopicService, type SubscriberTopicService } from '../../server/subscribers/topics.ts'
import { clearDeletedTopics, createTopicService, type TopicService } from '../../server/topics/service.ts'
import { live, testing } from '../support/scope.ts'
import { createWorld, refusal, type World } from '../support/worlds/audiences.ts'

let world: World
let topics: TopicService
let choices: SubscriberTopicService

beforeAll(async () => {
  world = await createWorld()
  topics = createTopicService({ ...world, guardUsed: guardUsedTopic })
  choices = createSubscriberTopicService(world)
})
afterAll(() => world.end())

beforeEach(async () => {
  await world.db.deleteFrom('topics').execute()
  await world.emitted()
})

let counter = 0
const newPerson = () =>
  world.subscribers.create(world.db, live(world.account), { email: `person-${++counter}@example.com` })
const newTopic = (values: { name?: string; default?: 'opt_in' | 'opt_out' } = {}) =>
  topics.create(world.db, world.account, { name: `Topic ${++counter}`, default: 'opt_out', ...values })
const choose = (subscriberId: string, topicId: string, subscribed: boolean, scope = live(world.account)) =>
  choices.update(world.db, scope, subscriberId, [{ topicId, subscribed }])
const chosen = async (subscriberId: string) =>
  (await choices.list(world.db, world.account, subscriberId)).map(({ topicId, subscribed }) => [topicId, subscribed])

test('topics are created, listed newest first, changed and deleted', async () => {
  const { db, account } = world
  const first = await newTopic({ name: 'News' })
  world.moveClock(1_000)
  const second = await topics.create(db, account, { name: 'Offers', description: 'Weekly.', default: 'opt_in' })

  expect(second).toMatchObject({ name: 'Offers', description: 'Weekly.', default: 'opt_in' })
  expect((await topics.list(db, account, { limit: 10 })).data).toEqual([second, first])
  const page = await topics.list(db, account, { limit: 1 })
  expect((await topics.list(db, account, { limit: 1, cursor: page.nextCursor ?? '' })).data).toEqual([first])

  world.moveClock(1_000)
  const changed = await topics.update(db, account, second.id, { name: 'Deals', description: null })
  expect(changed).toEqual({ ...second, name: 'Deals', description: null, updatedAt: world.clock.now().toISOString() })
  expect(await topics.update(db, account, second.id, { name: 'Deals' })).toEqual(changed)

  await topics.delete(db, live(account), second.id)
  expect(await refusal(topics.get(db, account, second.id))).toBe('not_found')
  expect(await refusal(topics.delete(db, live(account), second.id))).toBe('not_found')
  expect((await topics.list(db, account, { limit: 10 })).data).toEqual([first])
})

test('topics of another account are not there', async () => {
  const { db, stranger, account } = world
  const { id } = await newTopic()
  const person = await newPerson()

  expect(await refusal(topics.get(db, stranger, id))).toBe('not_found')
  expect(await refusal(topics.update(db, stranger, id, { name: 'Mine' }))).toBe('not_found')
  expect(await refusal(topics.delete(db, live(stranger), id))).toBe('not_found')
  expect(await refusal(choices.list(db, stranger, person.id))).toBe('not_found')
  expect(await refusal(choose(person.id, id, false, live(stranger)))).toBe('not_found')
  const theirs = await world.subscribers.create(db, live(stranger), { email: 'theirs@example.com' })
  expect(await refusal(choose(theirs.id, id, false, live(stranger)))).toBe('topic_not_found')
  expect(await topics.get(db, account, id)).toMatchObject({ id })
})

test(`topics of an account are ${maxTopics} at most, with several requests at once`, async () => {
  const { db, account, stranger } = world
  await sql`
      INSERT INTO topics (account_id, id, name, default_choice, created_at, updated_at)
      SELECT ${account}, 'top_' || n, 'Topic ' || n, 'opt_in', now(), now()
      FROM generate_series(1, ${maxTopics - 1}::int) AS n
    `.execute(db)

  const results = await Promise.all([newTopic(), newTopic(), newTopic()].map(refusal))
  expect(results.toSorted()).toEqual(['conflict', 'conflict', 'not refused'])
  expect(await topics.create(db, stranger, { name: 'Theirs', default: 'opt_in' })).toMatchObject({ name: 'Theirs' })
})

test('what a person gets is the default until they choose', async () => {
  const person = await newPerson()
  const everybody = await newTopic({ default: 'opt_out' })
  const nobody = await newTopic({ default: 'opt_in' })
  expect(new Map((await chosen(person.id)) as [string, boolean][])).toEqual(
    new Map([
      [everybody.id, true],
      [nobody.id, false],
    ]),
  )

  const after = await choices.update(world.db, live(world.account), person.id, [
    { topicId: everybody.id, subscribed: false },
    { topicId: nobody.id, subscribed: true },
  ])

  const at = world.clock.now().toISOString()
  expect(after).toEqual(await choices.list(world.db, world.account, person.id))
  expect(new Map(after.map(({ topicId, subscribed, chosenAt }) => [topicId, { subscribed, chosenAt }]))).toEqual(
    new Map([
      [everybody.id, { subscribed: false, chosenAt: at }],
      [nobody.id, { subscribed: true, chosenAt: at }],
    ]),
  )
})

test('what a person gets is told of once for each audience when it changes, and not when it stays', async () => {
  const { db, account, audiences, contacts } = world
  const person = await newPerson()
  const lists = [
    await audiences.create(db, live(account), { name: 'A' }),
    await audiences.create(db, live(account), { name: 'B' }),
  ]
  for (const { id } of lists) await contacts.add(db, live(account), id, { email: person.email })
  const { id } = await newTopic({ default: 'opt_out' })
  await world.emitted()

  await choose(person.id, id, true)
  expect(await world.emitted()).toEqual([])

  await choose(person.id, id, false)
  const told = await world.emitted()
  expect(told.map(([type, data]) => [type, Object(data).changes])).toEqual([
    ['contact.updated', ['topics']],
    ['contact.updated', ['topics']],
  ])

  await choose(person.id, id, false)
  expect(await world.emitted()).toEqual([])
})

test('what a person gets is one row, however often they change it', async () => {
  const person = await newPerson()
  const { id } = await newTopic()
  for (let change = 0; change < 40; change++) await choose(person.id, id, change % 2 === 1)

  const rows = await world.db.selectFrom('topic_choices').selectAll().where('subscriber_id', '=', person.id).execute()
  expect(rows.map(({ topic_id, subscribed }) => [topic_id, subscribed])).toEqual([[id, true]])
})

test('what a person gets is not changed where one of the topics is not there or named twice', async () => {
  const person = await newPerson()
  const { id } = await newTopic()
  const leave = { topicId: id, subscribed: false }
  const unknown = { topicId: exampleId('topic'), subscribed: false }

  const update = (given: (typeof leave)[]) => choices.update(world.db, live(world.account), person.id, given)
  await expect(update([leave, unknown])).rejects.toMatchObject({
    code: 'topic_not_found',
    details: [{ path: 'body.topics[1].topicId' }],
  })
  await expect(update([leave, leave])).rejects.toMatchObject({
    code: 'rule_violation',
    details: [{ path: 'body.topics[1].topicId' }],
  })
  expect(await refusal(choose(newId('subscriber', world.clock.now()), id, false))).toBe('not_found')
  expect(await chosen(person.id)).toEqual([[id, true]])
})

test('what a person gets can be all topics at once', async () => {
  const person = await newPerson()
  await sql`
      INSERT INTO topics (account_id, id, name, default_choice, created_at, updated_at)
      SELECT ${world.account}, 'top_' || n, 'Topic ' || n, 'opt_out', now(), now()
      FROM generate_series(1, ${maxTopics}::int) AS n
    `.execute(world.db)
  const all = (await chosen(person.id)).map(([topicId]) => ({ topicId: String(topicId), subscribed: false }))

  const after = await choices.update(world.db, live(world.account), person.id, all)
  expect([after.length, after.some(({ subscribed }) => subscribed)]).toEqual([maxTopics, false])
})

test('a test key takes somebody out of a topic, and cannot bring them back', async () => {
  const person = await newPerson()
  const { id } = await newTopic()
  const scope = testing(world.account)
  await choose(person.id, id, false, scope)

  expect(await refusal(choose(person.id, id, true, scope))).toBe('authentication_error')
  expect(await chosen(person.id)).toEqual([[id, false]])
  await choose(person.id, id, true)
  expect(await chosen(person.id)).toEqual([[id, true]])
})

test('a test key cannot delete or rename the address of somebody who left a topic', async () => {
  const { db, account, subscribers } = world
  const person = await newPerson()
  const { id } = await newTopic()
  await choose(person.id, id, false)
  const scope = testing(account)

  expect(await refusal(subscribers.delete(db, scope, person.id))).toBe('authentication_error')
  expect(await refusal(subscribers.update(db, scope, person.id, { email: 'new@example.com' }))).toBe(
    'authentication_error',
  )
  await choose(person.id, id, true)
  expect(await refusal(subscribers.delete(db, scope, person.id))).toBe('not refused')
})

test('choices go with the person', async () => {
  const { db, account, subscribers } = world
  const person = await newPerson()
  const { id } = await newTopic()
  await choose(person.id, id, false)
  await subscribers.delete(db, live(account), person.id)

  expect(await db.selectFrom('topic_choices').selectAll().where('subscriber_id', '=', person.id).execute()).toEqual([])
})

test('choices go with the topic, in small transactions where there are many', async () => {
  const { db, account } = world
  const { id } = await newTopic()
  const kept = await newTopic()
  await sql`
      INSERT INTO topic_choices (account_id, subscriber_id, topic_id, subscribed, changed_at)
      SELECT ${account}, 'sub_' || n, t, false, now() FROM generate_series(1, 4500) AS n,
        unnest(${[id, kept.id]}::text[]) AS t
    `.execute(db)
  const left = async (topicId: string) =>
    (await db.selectFrom('topic_choices').selectAll().where('topic_id', '=', topicId).execute()).length

  await topics.delete(db, live(account), id)
  expect(await left(id)).toBe(2_500)
  expect(await refusal(topics.get(db, account, id))).toBe('not_found')

  await clearDeletedTopics({ db })
  expect([await left(id), await left(kept.id)]).toEqual([0, 4_500])
  expect((await db.selectFrom('topics').select('id').execute()).map((row) => row.id)).toEqual([kept.id])
})

test('choices are not written of a topic that is being deleted', async () => {
  const { db, account } = world
  const person = await newPerson()
  const { id } = await newTopic()
  const [deleted, written] = await Promise.all([
    refusal(topics.delete(db, live(account), id)),
    refusal(choose(person.id, id, false)),
  ])

  expect(deleted).toBe('not refused')
  expect(['not refused', 'topic_not_found']).toContain(written)
  await clearDeletedTopics({ db })
  expect(await db.selectFrom('topic_choices').selectAll().where('topic_id', '=', id).execute()).toEqual([])
})
