import { afterAll, beforeAll, expect, test } from 'vitest'
import { exampleId } from '../../contract/ids.ts'
import { guardUsedTopic } from '../../server/campaigns/in-use.ts'
import { createSubscriberTopicService } from '../../server/subscribers/topics.ts'
import { createTopicService, type TopicService } from '../../server/topics/service.ts'
import { live } from '../support/scope.ts'
import { createEmailWorld, type EmailWorld, good } from '../support/worlds/emails.ts'

let world: EmailWorld
let topics: TopicService
let audienceId: string

beforeAll(async () => {
  world = await createEmailWorld()
  topics = createTopicService({ clock: world.time.clock, guardUsed: guardUsedTopic })
  audienceId = (await world.audiences.create(world.db, live(world.account), { name: 'News' })).id
})
afterAll(() => world.end())

const newTopic = async (choice: 'opt_in' | 'opt_out', account = world.account) =>
  (await topics.create(world.db, account, { name: 'A topic', default: choice })).id

async function add(email: string, topicId: string, subscribed: boolean | null): Promise<void> {
  const { db, live, contacts, time, outbox } = world
  const { subscriberId } = await contacts.add(db, live, audienceId, { email })
  if (subscribed === null) return
  const choices = createSubscriberTopicService({ clock: time.clock, outbox })
  await choices.update(db, live, subscriberId, [{ topicId, subscribed }])
}

async function send(to: string[], topicId: string, scope = world.live) {
  const { db, emails } = world
  const { id } = await emails.send(db, scope, { ...good, to, audienceId, topicId })
  return emails.get(db, scope, id)
}

test.each(['opt_in', 'opt_out'] as const)('an email about a topic goes to who gets it: %s', async (choice) => {
  const topicId = await newTopic(choice)
  await add(`${choice}-joined@example.org`, topicId, true)
  await add(`${choice}-left@example.org`, topicId, false)
  await add(`${choice}-silent@example.org`, topicId, null)
  const to = ['JOINED', 'LEFT', 'silent', 'stranger'].map((who) => `${choice}-${who}@example.org`)

  const email = await send(to, topicId)

  const byDefault = choice === 'opt_out' ? 'queued' : 'suppressed'
  expect(email.recipients.map(({ status }) => status)).toEqual(['queued', 'suppressed', byDefault, byDefault])
  expect(email.recipients[1]?.reason).toBe('The person does not get the topic of the email, so it is not sent to them.')
  expect([email.topicId, email.audienceId]).toEqual([topicId, audienceId])
})

test('an email about a topic needs a topic of the account and an audience', async () => {
  const { db, live, test: testing, stranger, emails } = world
  const theirs = await newTopic('opt_out', stranger)
  const deleted = await newTopic('opt_out')
  await topics.delete(db, world.live, deleted)

  for (const topicId of [theirs, deleted, exampleId('topic')]) {
    for (const scope of [live, testing]) {
      await expect(send(['ada@example.org'], topicId, scope)).rejects.toMatchObject({
        code: 'topic_not_found',
        details: [{ path: 'body.topicId' }],
      })
    }
  }
  await expect(emails.send(db, live, { ...good, topicId: theirs })).rejects.toMatchObject({
    code: 'rule_violation',
    details: [{ path: 'body.topicId', message: 'needs audienceId too' }],
  })
})

test('an email about a topic is sent again about the same topic, if that is there', async () => {
  const { db, live, emails } = world
  const topicId = await newTopic('opt_out')
  await add('again@example.org', topicId, false)
  const { id } = await send(['again@example.org'], topicId)

  const again = await emails.resend(db, live, id)
  expect(await emails.get(db, live, again.id)).toMatchObject({ topicId, status: 'suppressed' })
  await topics.delete(db, world.live, topicId)
  await expect(emails.resend(db, live, id)).rejects.toMatchObject({ code: 'topic_not_found' })
})
