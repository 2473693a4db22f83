import { afterAll, afterEach, beforeEach, expect, test } from 'vitest'
import { exampleId } from '../../contract/ids.ts'
import { guardUsedTopic } from '../../server/campaigns/in-use.ts'
import { inTransaction } from '../../server/database/connection.ts'
import { recordFacts } from '../../server/email-delivery/record-facts.ts'
import { lockDue } from '../../server/email-delivery/sending-queries.ts'
import { createMailTokens } from '../../server/message/mail-tokens.ts'
import { createRenderer } from '../../server/rendering/renderer.ts'
import { createSubscriberTopicService } from '../../server/subscribers/topics.ts'
import { createTopicService, type TopicService } from '../../server/topics/service.ts'
import { type CampaignWorld, createCampaignWorld } from '../support/worlds/campaigns.ts'

const renderer = createRenderer()
afterAll(() => renderer[Symbol.asyncDispose]())

/** The key of the tokens of the world. */
const tokens = createMailTokens(Buffer.alloc(32, 2))

let world: CampaignWorld
let topics: TopicService
let audience: string
let topicId: string
beforeEach(async () => {
  world = await createCampaignWorld(renderer)
  topics = createTopicService({ clock: world.time.clock, guardUsed: guardUsedTopic })
  audience = await world.addAudience(0)
  topicId = (await topics.create(world.db, world.account, { name: 'Offers', default: 'opt_out' })).id
})
afterEach(() => world[Symbol.asyncDispose]())

const get = (id: string) => world.campaigns.get(world.db, world.live, id)

function choose(subscriberId: string, subscribed: boolean) {
  const choices = createSubscriberTopicService({ clock: world.time.clock, outbox: world.outbox })
  return choices.update(world.db, world.live, subscriberId, [{ topicId, subscribed }])
}

async function outcomes(id: string) {
  const { data } = await world.campaigns.recipients(world.db, world.live, id, { limit: 100 })
  return new Map(data.map(({ subscriberId, status, reason }) => [subscriberId, [status, reason]]))
}

test('a campaign about a topic goes to who gets it at their turn, and its links leave the topic', async () => {
  const [left = '', leaves = '', stays = ''] = await world.addPeople(audience, 3)
  await choose(left, false)
  const text = '{{ unsubscribeUrl }} {{ preferencesUrl }}'
  const id = await world.draft(audience, { topicId, content: { text } })
  await world.start(id)
  await world.turn()
  await choose(leaves, false)
  await world.run()

  expect(await outcomes(id)).toEqual(
    new Map([
      [left, ['skipped', 'unsubscribed']],
      [leaves, ['skipped', 'unsubscribed']],
      [stays, ['queued', null]],
    ]),
  )
  const written = await world.db
    .selectFrom('emails')
    .innerJoin('email_contents', 'email_contents.email_id', 'emails.id')
    .select(['emails.id', 'emails.topic_id', 'email_contents.text'])
    .execute()
  expect(written.map((email) => email.topic_id)).toEqual([topicId])
  const [, link, preferences] = /^(https:\S+) (https:\S+)$/.exec(written[0]?.text?.trim() ?? '') ?? []
  expect(preferences).toBe(`${link}/preferences`)
  const token = link?.slice('https://mail.example/u/'.length) ?? ''
  expect(tokens.readUnsubscribe(token)).toMatchObject({ emailId: written[0]?.id, topicId })
})

test('a topic has to be there when a campaign is written and sent, and is kept, changed and taken away', async () => {
  const theirs = await topics.create(world.db, world.stranger, { name: 'Theirs', default: 'opt_out' })
  const missing = { code: 'topic_not_found', details: [{ path: 'body.topicId' }] }
  await expect(world.draft(audience, { topicId: exampleId('topic') })).rejects.toMatchObject(missing)
  await expect(world.draft(audience, { topicId: theirs.id })).rejects.toMatchObject(missing)

  const id = await world.draft(audience, { topicId })
  const update = (change: { name?: string; topicId?: string | null }) =>
    world.campaigns.update(world.db, world.live, id, change)
  expect(await update({ name: 'Other' })).toMatchObject({ topicId })
  expect(await world.campaigns.duplicate(world.db, world.live, id)).toMatchObject({ topicId })
  await expect(update({ topicId: theirs.id })).rejects.toMatchObject(missing)
  await topics.delete(world.db, world.live, topicId)
  await expect(world.start(id)).rejects.toMatchObject(missing)
  expect(await update({ topicId: null })).toMatchObject({ topicId: null })
  await world.start(id)
})

test('a campaign whose topic is gone before it is sent is paused, and says why', async () => {
  await world.addPeople(audience, 2)
  const id = await world.draft(audience, { topicId })
  await world.start(id)
  // As a process of an earlier version deletes it: today this is refused.
  await world.db.updateTable('topics').set({ deleted_at: new Date() }).where('id', '=', topicId).execute()
  await world.run()

  expect(await get(id)).toMatchObject({ status: 'paused', statusReason: expect.stringContaining(topicId) })
  expect(await world.written()).toEqual([])
})

test('who leaves the topic while their email waits is counted as who left it before their turn', async () => {
  const { db, time, outbox } = world
  const [leaves = ''] = await world.addPeople(audience, 1)
  const id = await world.draft(audience, { topicId })
  await world.start(id)
  await world.run()
  await choose(leaves, false)
  const emails = await db.selectFrom('emails').select('id').execute()
  const due = await inTransaction(db, (trx) =>
    lockDue(
      trx,
      emails.map((email) => email.id),
    ),
  )
  const at = time.clock.now()
  // As the worker writes down what it did not send.
  const facts = due.flatMap(({ id: emailId, recipients: [recipient] }) => {
    return recipient?.withheld ? [{ kind: 'suppressed' as const, emailId, position: 0, at, ...recipient.withheld }] : []
  })
  await recordFacts(db, { outbox }, facts)
  await time.advance(1_000)
  await world.run()
  expect(await outcomes(id)).toEqual(new Map([[leaves, ['skipped', 'unsubscribed']]]))
  expect(await world.campaigns.statistics(db, world.live, id)).toMatchObject({
    skipped: { left: 0, unsubscribed: 1, suppressed: 0 },
  })
})
