import { afterAll, beforeAll, expect, test } from 'vitest'
import { guardUsedTopic } from '../../server/campaigns/in-use.ts'
import { countUnsubscribed } from '../../server/email-delivery/count-unsubscribed.ts'
import { newId } from '../../server/shared/ids.ts'
import { unsubscribeByLink } from '../../server/subscribers/one-click.ts'
import { createSubscriberTopicService } from '../../server/subscribers/topics.ts'
import { createSuppressionService } from '../../server/suppressions/service.ts'
import { createTopicService } from '../../server/topics/service.ts'
import { live } from '../support/scope.ts'
import { createWorld, type World } from '../support/worlds/audiences.ts'

let world: World

beforeAll(async () => {
  world = await createWorld()
})
afterAll(() => world.end())

function follow(address: string, account = world.account, topicId?: string) {
  const emailId = newId('email', world.clock.now())
  return {
    emailId,
    done: unsubscribeByLink(
      world.db,
      { ...world, count: countUnsubscribed },
      { emailId, position: 0, accountId: account, address, topicId },
    ),
  }
}

async function suppressed(address: string) {
  const { data } = await createSuppressionService(world).list(world.db, world.account, { address, limit: 10 })
  return data.map(({ reason, emailId, address: shown }) => ({ reason, emailId, address: shown }))
}

test('the unsubscribe link of an email unsubscribes the person from everything, in whatever letter case they were written to', async () => {
  const { db, account, subscribers, audiences, contacts } = world
  const audience = await audiences.create(db, live(account), { name: 'News' })
  const person = await subscribers.create(db, live(account), { email: 'Ann@example.org' })
  await contacts.add(db, live(account), audience.id, { email: person.email })
  await world.emitted()
  const { emailId, done } = follow('ann@EXAMPLE.org')

  expect(await done).toBe(true)
  expect(await subscribers.get(db, account, person.id)).toMatchObject({ status: 'unsubscribed' })
  expect((await world.emitted()).map(([type]) => type)).toEqual(['subscriber.unsubscribed', 'contact.updated'])
  expect(await suppressed('ann@example.org')).toEqual([{ reason: 'unsubscribe', emailId, address: 'ann@EXAMPLE.org' }])
})

test('the unsubscribe link of an email changes nothing when it is followed again, or many times at once', async () => {
  const { db, account, subscribers } = world
  await subscribers.create(db, live(account), { email: 'bob@example.org' })
  await world.emitted()

  const answers = await Promise.all([1, 2, 3, 4].map(() => follow('bob@example.org').done))
  await follow('bob@example.org').done

  expect(answers).toEqual([true, true, true, true])
  expect((await world.emitted()).map(([type]) => type)).toEqual(['subscriber.unsubscribed'])
  expect(await suppressed('bob@example.org')).toHaveLength(1)
})

test('the unsubscribe link of an email holds emails to audiences back also from an address that is no subscriber’s', async () => {
  await world.emitted()

  expect(await follow('nobody@example.org').done).toBe(true)
  expect(await world.emitted()).toEqual([])
  expect(await suppressed('nobody@example.org')).toMatchObject([{ reason: 'unsubscribe' }])
})

test('the unsubscribe link of an email leaves an address that is on the list for a stronger reason there for it', async () => {
  await createSuppressionService(world).create(world.db, world.account, { address: 'by-hand@example.org' })

  expect(await follow('by-hand@example.org').done).toBe(true)
  expect(await suppressed('by-hand@example.org')).toMatchObject([{ reason: 'manual' }])
})

test('the unsubscribe link of an email does nothing to the people of another account', async () => {
  const { db, account, stranger, subscribers } = world
  const person = await subscribers.create(db, live(account), { email: 'eve@example.org' })
  await follow('eve@example.org', stranger).done

  expect(await subscribers.get(db, account, person.id)).toMatchObject({ status: 'active' })
  expect(await suppressed('eve@example.org')).toEqual([])
})

test('the unsubscribe link of an email of an account that is gone is told from one that works', async () => {
  expect(await follow('ann@example.org', newId('account', world.clock.now())).done).toBe(false)
})

test('the unsubscribe link of an email works while the person is being deleted', async () => {
  const { db, account, subscribers } = world
  const person = await subscribers.create(db, live(account), { email: 'gone@example.org' })
  const unsubscribe: typeof subscribers.unsubscribe = async (...args) => {
    await subscribers.delete(db, live(account), person.id)
    return subscribers.unsubscribe(...args)
  }
  const means = { ...world, count: countUnsubscribed, subscribers: { unsubscribe } }
  const from = { emailId: newId('email', world.clock.now()), position: 0, accountId: account, address: person.email }

  expect(await unsubscribeByLink(db, means, from)).toBe(true)
  expect(await suppressed('gone@example.org')).toMatchObject([{ reason: 'unsubscribe' }])
})

async function arrange(email: string) {
  const { db, account, audiences, contacts } = world
  const topics = createTopicService({ ...world, guardUsed: guardUsedTopic })
  const audience = await audiences.create(db, live(account), { name: 'News' })
  const { subscriberId } = await contacts.add(db, live(account), audience.id, { email })
  const topic = await topics.create(db, account, { name: 'Offers', default: 'opt_out' })
  const kept = await topics.create(db, account, { name: 'News', default: 'opt_out' })
  await world.emitted()
  const left = async () => {
    const all = await createSubscriberTopicService(world).list(db, account, subscriberId)
    return all.flatMap(({ topicId, subscribed }) => (subscribed ? [] : [topicId]))
  }
  return { topics, topic, kept, subscriberId, left }
}

test('the unsubscribe link of an email about a topic leaves the topic alone, and again changes nothing', async () => {
  const { topic, subscriberId, left } = await arrange('topic@example.org')

  const link = () => follow('TOPIC@example.org', world.account, topic.id).done
  expect(await Promise.all([link(), link(), link()])).toEqual([true, true, true])
  expect(await left()).toEqual([topic.id])
  expect(await world.subscribers.get(world.db, world.account, subscriberId)).toMatchObject({ status: 'active' })
  expect((await world.emitted()).map(([type, data]) => [type, Object(data).changes])).toEqual([
    ['contact.updated', ['topics']],
  ])
  expect(await suppressed('topic@example.org')).toEqual([])
})

test('the unsubscribe link of an email about a topic leaves everything where the topic was deleted', async () => {
  const { topics, topic, kept, subscriberId } = await arrange('deleted-topic@example.org')
  await topics.delete(world.db, live(world.account), topic.id)

  expect(await follow('deleted-topic@example.org', world.account, topic.id).done).toBe(true)
  expect(await world.subscribers.get(world.db, world.account, subscriberId)).toMatchObject({ status: 'unsubscribed' })
  expect(await suppressed('deleted-topic@example.org')).toMatchObject([{ reason: 'unsubscribe' }])
  await topics.delete(world.db, live(world.account), kept.id)
})

test('the unsubscribe link of an email about a topic leaves everything for an address that is no subscriber’s, or of another account', async () => {
  const { topic, left } = await arrange('theirs@example.org')

  expect(await follow('unknown@example.org', world.account, topic.id).done).toBe(true)
  expect(await suppressed('unknown@example.org')).toMatchObject([{ reason: 'unsubscribe' }])
  expect(await follow('theirs@example.org', world.stranger, topic.id).done).toBe(true)
  expect(await left()).toEqual([])
  expect(await suppressed('theirs@example.org')).toEqual([])
})
