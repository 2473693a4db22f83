import { afterAll, beforeAll, expect, test } from 'vitest'
import { importLimits } from '../../contract/import-files.ts'
import { contract } from '../../contract/index.ts'
import { guardUsedTopic } from '../../server/campaigns/in-use.ts'
import { createSubscriberTopicService, type SubscriberTopicService } from '../../server/subscribers/topics.ts'
import { createTopicService, type TopicService } from '../../server/topics/service.ts'
import { live } from '../support/scope.ts'
import { refusal } from '../support/worlds/audiences.ts'
import { createImportWorld, type ImportWorld } from '../support/worlds/imports.ts'
import { csvFile, zipOf } from '../support/zip.ts'

let world: ImportWorld
let topics: TopicService
let choices: SubscriberTopicService

beforeAll(async () => {
  world = await createImportWorld()
  topics = createTopicService({ ...world, guardUsed: guardUsedTopic })
  choices = createSubscriberTopicService(world)
})
afterAll(() => world.end())

const newTopic = async (choice: 'opt_in' | 'opt_out' = 'opt_in', account = world.account) =>
  (await topics.create(world.db, account, { name: 'News', default: choice })).id
const newPerson = async (email: string) => (await world.subscribers.create(world.db, live(world.account), { email })).id
const newAudience = async () => (await world.audiences.create(world.db, live(world.account), { name: 'Readers' })).id
const choose = (subscriberId: string, topicId: string, subscribed: boolean) =>
  choices.update(world.db, live(world.account), subscriberId, [{ topicId, subscribed }])

async function idOf(email: string): Promise<string> {
  const { data } = await world.subscribers.list(world.db, world.account, { email, limit: 1 })
  return data[0]?.id ?? expect.fail(`${email} is not there`)
}

/** Returns the choice of a person about a topic. Null: they made none. */
async function choiceOf(email: string, topicId: string): Promise<boolean | null> {
  const found = await choices.list(world.db, world.account, await idOf(email))
  const topic = found.find((one) => one.topicId === topicId)
  return topic?.chosenAt == null ? null : topic.subscribed
}

const file = (...names: string[]) => ['email', ...names.map((name) => `${name}@example.com`)].join('\n')

test('new contacts are subscribed, also people of another audience, and nobody who left the topic', async () => {
  const [optIn, optOut, other] = [await newTopic(), await newTopic('opt_out'), await newTopic()]
  const known = await newPerson('known@example.com')
  const left = await newPerson('left@example.com')
  await choose(left, optIn, false)
  const found = await world.run(file('new', 'known', 'left', 'NEW'), { topics: `${optIn},${optOut},${optIn}` })
  expect(found).toMatchObject({ status: 'completed', created: 3, skipped: 1, topics: [optIn, optOut] })
  for (const email of ['new@example.com', 'known@example.com']) {
    expect([await choiceOf(email, optIn), await choiceOf(email, optOut)]).toEqual([true, true])
  }
  expect([await choiceOf('left@example.com', optIn), await choiceOf('left@example.com', optOut)]).toEqual([false, true])
  expect(await choiceOf('new@example.com', other)).toBeNull()
  // Once more they are there, and what they choose meanwhile stays.
  await choose(known, optIn, false)
  await world.run(file('new', 'known', 'left'), { audienceId: found.audienceId, topics: optIn, conflict: 'update' })
  expect(await choiceOf('known@example.com', optIn)).toBe(false)
})

test('contacts that were there are subscribed with `update` alone', async () => {
  const [skipped, updated] = [await newTopic(), await newTopic()]
  const { audienceId } = await world.run(file('there'))
  expect(await world.run(file('there'), { audienceId, topics: skipped })).toMatchObject({ skipped: 1 })
  expect(await choiceOf('there@example.com', skipped)).toBeNull()
  const again = { audienceId, topics: updated, conflict: 'update' } as const
  expect(await world.run(file('there'), again)).toMatchObject({ updated: 1, skipped: 0 })
  expect(await choiceOf('there@example.com', updated)).toBe(true)
  expect(await world.run(file('there'), again)).toMatchObject({ updated: 0, skipped: 1 })
})

test('nobody is subscribed who unsubscribed from everything, from the audience, or with this import', async () => {
  const { db, account, contacts, subscribers } = world
  const topicId = await newTopic()
  const audienceId = await newAudience()
  const gone = await newPerson('gone@example.com')
  await subscribers.unsubscribe(db, live(account), gone)
  const quiet = await contacts.add(db, live(account), audienceId, { email: 'quiet@example.com' })
  await contacts.update(db, live(account), { audienceId, subscriberId: quiet.subscriberId }, { status: 'unsubscribed' })
  const options = { audienceId, topics: topicId, conflict: 'update' } as const
  expect(await world.run(file('gone', 'quiet', 'glad'), options)).toMatchObject({ created: 2, updated: 0, skipped: 1 })
  for (const name of ['gone', 'quiet']) expect(await choiceOf(`${name}@example.com`, topicId)).toBeNull()
  expect(await choiceOf('glad@example.com', topicId)).toBe(true)
  await world.run(file('away'), { ...options, status: 'unsubscribed' })
  expect(await choiceOf('away@example.com', topicId)).toBeNull()
})

test('who gets a topic now causes events for their other audiences too, and who got it before does not', async () => {
  const { db, account, contacts, upload, startWorker, ended, outbox, emitted } = world
  const [optIn, optOut] = [await newTopic(), await newTopic('opt_out')]
  const [elsewhere, audienceId] = [await newAudience(), await newAudience()]
  const { subscriberId } = await contacts.add(db, live(account), elsewhere, { email: 'told@example.com' })
  await contacts.add(db, live(account), audienceId, { email: 'both@example.com' })
  const both = await idOf('both@example.com')
  async function eventsOf(topicId: string, names: string[]) {
    await emitted()
    const { id } = await upload(file(...names), { audienceId, topics: topicId, conflict: 'update' })
    const worker = startWorker({ outbox })
    await ended(id)
    await worker.stop()
    return emitted()
  }
  const created = (id: string, email: string) => [
    'contact.created',
    { subscriberId: id, audienceId, email, status: 'active' },
  ]
  const changed = (id: string, inAudience: string, email: string) => [
    'contact.updated',
    { subscriberId: id, audienceId: inAudience, email, changes: ['topics'] },
  ]
  expect(await eventsOf(optOut, ['both'])).toEqual([])
  const events = await eventsOf(optIn, ['told', 'both', 'fresh'])
  const fresh = await idOf('fresh@example.com')
  expect(events).toHaveLength(5)
  expect(events).toEqual(
    expect.arrayContaining([
      ['subscriber.added', { subscriberId: fresh, email: 'fresh@example.com', status: 'active' }],
      created(fresh, 'fresh@example.com'),
      created(subscriberId, 'told@example.com'),
      changed(subscriberId, elsewhere, 'told@example.com'),
      changed(both, audienceId, 'both@example.com'),
    ]),
  )
})

test('people of a ZIP are subscribed, but none who left by another file of it', async () => {
  const topicId = await newTopic()
  const zip = zipOf([csvFile('subscribed_a.csv', 'zip-stays', 'zip-left'), csvFile('unsubscribed_a.csv', 'zip-left')])
  expect(await world.run(zip, { topics: topicId })).toMatchObject({ created: 1, suppressed: 2, topics: [topicId] })
  const chosen = await world.db.selectFrom('topic_choices').selectAll().where('topic_id', '=', topicId).execute()
  expect(chosen.map((row) => row.subscriber_id)).toEqual([await idOf('zip-stays@example.com')])
})

test('a topic that is not there, or of another account, is refused before the file is read', async () => {
  const { db, account, stranger, upload } = world
  const deleted = await newTopic()
  await topics.delete(db, live(account), deleted)
  for (const id of [await newTopic('opt_in', stranger), deleted]) {
    await expect(upload(file('x'), { topics: `${await newTopic()},${id}` })).rejects.toMatchObject({
      code: 'topic_not_found',
      details: [{ path: 'query.topics' }],
    })
  }
  expect(await refusal(upload(file('x'), { topics: await newTopic() }))).toBe('not refused')
})

test('a topic that is deleted meanwhile is passed over', async () => {
  const { db, account, upload, startWorker, ended } = world
  const [stays, goes] = [await newTopic(), await newTopic()]
  const { id } = await upload(file('passed'), { topics: `${goes},${stays}` })
  await topics.delete(db, live(account), goes)
  const worker = startWorker()
  expect(await ended(id)).toMatchObject({ status: 'completed', created: 1, topics: [goes, stays] })
  await worker.stop()
  expect(await choiceOf('passed@example.com', stays)).toBe(true)
})

test('the contract takes as many topics as an import may have', async () => {
  const { topics: field } = contract.imports.create.query.shape
  const id = await newTopic()
  const ids = Array.from({ length: importLimits.topics }, () => id)
  expect(field.safeParse(ids.join(',')).success).toBe(true)
  for (const wrong of [[...ids, id].join(','), '', `${id},`, `${id}, ${id}`, id.replace('top_', 'aud_')]) {
    expect(field.safeParse(wrong).success).toBe(false)
  }
})
