import { expect, onTestFinished, test } from 'vitest'
import { createContactService } from '../../server/audiences/contact-service.ts'
import { createAudienceService } from '../../server/audiences/service.ts'
import { guardUsedAudience, guardUsedTopic } from '../../server/campaigns/in-use.ts'
import { createOutbox } from '../../server/outbox/append.ts'
import { createSubscriberService } from '../../server/subscribers/service.ts'
import { createSubscriberTopicService } from '../../server/subscribers/topics.ts'
import { createSuppressionService } from '../../server/suppressions/service.ts'
import { createTopicService } from '../../server/topics/service.ts'
import { seedAccount } from '../support/emails.ts'
import { startMailEngine, startMailServer } from '../support/mail-engine.ts'
import { noConfirmations } from '../support/no-confirmations.ts'
import { live } from '../support/scope.ts'

/* Changes to recipients between the time an email is accepted and the time it is sent. */

async function start() {
  const server = await startMailServer()
  const engine = await startMailEngine({ port: server.port })
  onTestFinished(async () => {
    await engine[Symbol.asyncDispose]()
    await server[Symbol.asyncDispose]()
  })
  const { db, clock, accountId } = engine
  const means = { clock, outbox: createOutbox({ clock, wake: () => undefined }), confirmations: noConfirmations }
  const audiences = createAudienceService({ ...means, guardUsed: guardUsedAudience })
  const contacts = createContactService(means)
  const subscribers = createSubscriberService(means)

  return {
    server,
    engine,
    stranger: await seedAccount(db, clock.now()),
    suppressions: createSuppressionService({ clock }),
    addAudience: async (owner = accountId) => (await audiences.create(db, live(owner), { name: 'News' })).id,
    /** Adds a person to a list. */
    add: async (audienceId: string, email: string, owner = accountId) =>
      (await contacts.add(db, live(owner), audienceId, { email })).subscriberId,
    leave: (audienceId: string, subscriberId: string, owner = accountId) =>
      contacts.update(db, live(owner), { audienceId, subscriberId }, { status: 'unsubscribed' }),
    /** Unsubscribes a person from everything. */
    async unsubscribe(email: string, owner = accountId) {
      const { id } = await subscribers.create(db, live(owner), { email })
      await subscribers.unsubscribe(db, live(owner), id)
    },
    scheduledAt: new Date(clock.now().getTime() + 3_600_000),
    /** Lets an email that waits come to its end, and answers its recipients' statuses. */
    async outcomeOf(emailId: string): Promise<string[]> {
      await engine.advance(3_601)
      const { recipients } = await engine.statusOf(emailId, (seen) => !['scheduled', 'sending'].includes(seen.status))
      return recipients
    },
  }
}

test('who unsubscribes from its audience, or from everything, before its time gets no email, which says so', async () => {
  const { server, engine, scheduledAt, ...people } = await start()
  const [audienceId, otherAudience] = [await people.addAudience(), await people.addAudience()]
  const left = await people.add(audienceId, 'Left@example.com')
  await people.add(audienceId, 'stays@example.com')
  const leftOther = await people.add(otherAudience, 'left-other@example.com')
  await people.add(audienceId, 'left-other@example.com')
  const to = ['left@example.com', 'gone@example.com', 'stays@example.com', 'left-other@example.com']
  const toAudience = await engine.send({ to, scheduledAt, audienceId })
  const toThem = await engine.send({ to, scheduledAt })
  await people.leave(audienceId, left)
  await people.leave(otherAudience, leftOther)
  await people.unsubscribe('gone@example.com')

  expect(await people.outcomeOf(toAudience)).toEqual(['suppressed', 'suppressed', 'delivered', 'delivered'])
  const detail = 'The person unsubscribed before the email was sent.'
  const timeline = await engine.timelineOf(toAudience)
  expect(timeline.filter((entry) => entry.type === 'suppressed')).toEqual([
    { position: 0, type: 'suppressed', detail },
    { position: 1, type: 'suppressed', detail },
  ])
  // It is of no audience.
  expect(await people.outcomeOf(toThem)).toEqual(['delivered', 'delivered', 'delivered', 'delivered'])
  expect(server.received.flatMap(({ recipients }) => recipients).toSorted()).toEqual(
    [...to, 'stays@example.com', 'left-other@example.com'].toSorted(),
  )
})

test('what another account knows of somebody keeps no email of this one', async () => {
  const { engine, scheduledAt, stranger, suppressions, ...people } = await start()
  const { db } = engine
  const audienceId = await people.addAudience()
  const theirs = await people.addAudience(stranger)
  const to = ['blocked@example.com', 'left@example.com', 'gone@example.com']
  for (const email of to) await people.add(audienceId, email)
  const own = await engine.send({ to, scheduledAt })
  const toAudience = await engine.send({ to, scheduledAt, audienceId })
  await suppressions.create(db, stranger, { address: 'blocked@example.com' })
  await people.leave(theirs, await people.add(theirs, 'left@example.com', stranger), stranger)
  await people.unsubscribe('gone@example.com', stranger)

  expect(await people.outcomeOf(own)).toEqual(['delivered', 'delivered', 'delivered'])
  expect(await people.outcomeOf(toAudience)).toEqual(['delivered', 'delivered', 'delivered'])
})

test('who does not get its topic any more at its time gets no email, nor anybody once the topic is deleted', async () => {
  const { engine, scheduledAt, ...people } = await start()
  const { db, clock, accountId } = engine
  const topics = createTopicService({ clock, guardUsed: guardUsedTopic })
  const choices = createSubscriberTopicService({ clock, outbox: createOutbox({ clock, wake: () => undefined }) })
  const audienceId = await people.addAudience()
  const topic = await topics.create(db, accountId, { name: 'Offers', default: 'opt_out' })
  const joined = await topics.create(db, accountId, { name: 'News', default: 'opt_in' })
  const deleted = await topics.create(db, accountId, { name: 'Gone', default: 'opt_out' })
  const to = ['Left@example.com', 'stays@example.com', 'stranger@example.com']
  const left = await people.add(audienceId, 'left@example.com')
  const stays = await people.add(audienceId, 'stays@example.com')
  const choose = (subscriberId: string, topicId: string, subscribed: boolean) =>
    choices.update(db, live(accountId), subscriberId, [{ topicId, subscribed }])
  await choose(left, joined.id, true)
  await choose(stays, joined.id, true)
  const byDefault = await engine.send({ to, scheduledAt, audienceId, topicId: topic.id })
  const byChoice = await engine.send({ to, scheduledAt, audienceId, topicId: joined.id })
  const toNobody = await engine.send({ to, scheduledAt, audienceId, topicId: deleted.id })
  await choose(left, topic.id, false)
  await choose(left, joined.id, false)
  await topics.delete(db, live(accountId), deleted.id)

  expect(await people.outcomeOf(byDefault)).toEqual(['suppressed', 'delivered', 'delivered'])
  expect(await people.outcomeOf(byChoice)).toEqual(['suppressed', 'delivered', 'suppressed'])
  expect(await people.outcomeOf(toNobody)).toEqual(['suppressed', 'suppressed', 'suppressed'])
  const detail = 'The person left the topic of the email, or it was deleted, before the email was sent.'
  const timeline = await engine.timelineOf(byDefault)
  expect(timeline.filter((entry) => entry.type === 'suppressed')).toEqual([{ position: 0, type: 'suppressed', detail }])
})
