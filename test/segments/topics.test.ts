import { afterAll, beforeAll, expect, test } from 'vitest'
import type { SegmentCondition } from '../../contract/segment-conditions.ts'
import type { Topic } from '../../contract/topics.ts'
import { guardUsedSegment, guardUsedTopic } from '../../server/campaigns/in-use.ts'
import { inTransaction } from '../../server/database/connection.ts'
import { segmentConditions } from '../../server/segments/segment-conditions.ts'
import { createSegmentService, type SegmentService } from '../../server/segments/service.ts'
import { createTopicService, type TopicService } from '../../server/topics/service.ts'
import { live } from '../support/scope.ts'
import { insertSegmentPeople, type SegmentPerson } from '../support/segment-people.ts'
import { createWorld, refusal, type World } from '../support/worlds/audiences.ts'

let world: World
let segments: SegmentService
let topics: TopicService
let audienceId: string
/** Nobody gets it who chose nothing. */
let offers: Topic

beforeAll(async () => {
  world = await createWorld()
  const { db, account, clock } = world
  segments = createSegmentService({ clock, guardUsed: guardUsedSegment })
  topics = createTopicService({ clock, guardUsed: guardUsedTopic })
  audienceId = (await world.audiences.create(db, live(account), { name: 'Readers' })).id
  offers = await topics.create(db, account, { name: 'Offers', default: 'opt_in' })
})
afterAll(() => world.end())

function person(email: string, choices: SegmentPerson['choices'] = {}): SegmentPerson {
  const status = 'active' as const
  const names = { firstName: null, lastName: null }
  return {
    email,
    ...names,
    subscriberStatus: status,
    status,
    createdAt: new Date(),
    properties: {},
    emails: [],
    choices,
  }
}

const subscribedTo = (topicId: string): SegmentCondition => ({ type: 'topic', topicId, subscribed: true })

test('a condition of a topic names a topic of the account', async () => {
  const { db, account, stranger } = world
  const theirs = await topics.create(db, stranger, { name: 'Theirs', default: 'opt_out' })
  const conditions: SegmentCondition = { type: 'not', condition: subscribedTo(theirs.id) }
  const path = 'body.conditions.condition.topicId'
  const details = [{ path, message: `the account has no topic "${theirs.id}"` }]
  for (const call of [
    () => segments.create(db, account, { audienceId, name: 'Faulty', conditions }),
    () => segments.preview(db, account, { audienceId, conditions }),
  ]) {
    await expect(call()).rejects.toMatchObject({ code: 'rule_violation', details })
  }
})

test('a condition of a topic chooses people, and is of no use once the topic is deleted', async () => {
  const { db, account } = world
  const people = [person('ada@example.com', { [offers.id]: true }), person('grace@example.com')]
  const [joined] = await insertSegmentPeople(db, { accountId: account, audienceId }, people)
  const body = { audienceId, name: 'Bargains', conditions: subscribedTo(offers.id) }
  const { id } = await segments.create(db, account, body)
  const { data } = await segments.contacts(db, account, id, { limit: 10 })
  expect(data.map(({ subscriberId }) => subscriberId)).toEqual([joined])

  await topics.delete(db, live(account), offers.id)
  const details = [{ path: 'conditions.topicId', message: expect.stringContaining(offers.id) }]
  await expect(segments.count(db, account, id)).rejects.toMatchObject({ code: 'segment_invalid', details })
  const ofCampaign = inTransaction(db, (trx) => segmentConditions(trx, account, { audienceId, ids: [id] }))
  expect(await refusal(ofCampaign)).toBe('segment_invalid')
})
