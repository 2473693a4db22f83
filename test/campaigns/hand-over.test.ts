import { afterAll, afterEach, beforeEach, expect, test } from 'vitest'
import { guardUsedTopic } from '../../server/campaigns/in-use.ts'
import { inTransaction } from '../../server/database/connection.ts'
import { recordFacts } from '../../server/email-delivery/record-facts.ts'
import type { Withholding } from '../../server/email-delivery/send-refusal.ts'
import { lockDue } from '../../server/email-delivery/sending-queries.ts'
import { createRenderer } from '../../server/rendering/renderer.ts'
import { createSubscriberTopicService } from '../../server/subscribers/topics.ts'
import { createTopicService } from '../../server/topics/service.ts'
import { type CampaignWorld, createCampaignWorld } from '../support/worlds/campaigns.ts'

const renderer = createRenderer()
afterAll(() => renderer[Symbol.asyncDispose]())

let world: CampaignWorld
beforeEach(async () => {
  world = await createCampaignWorld(renderer)
})
afterEach(() => world[Symbol.asyncDispose]())

/** Looks at queued emails as a worker does before their first attempt. Returns why which are withheld, by address. */
async function look(): Promise<Record<string, Withholding | null>> {
  const rows = await world.db.selectFrom('emails').select('id').where('status', '=', 'queued').execute()
  return inTransaction(world.db, async (trx) => {
    const emails = await lockDue(
      trx,
      rows.map(({ id }) => id),
    )
    return Object.fromEntries(
      emails.flatMap(({ recipients }) => recipients.map(({ address, withheld }) => [address, withheld])),
    )
  })
}

test('who leaves, unsubscribes or is suppressed while their email is queued is not written to, and counted so', async () => {
  const { db, live } = world
  const audience = await world.addAudience(1)
  const [left = '', deleted = '', unsubscribed = '', everything = '', suppressed = ''] = await world.addPeople(
    audience,
    5,
  )
  const id = await world.draft(audience)
  await world.start(id)
  await world.run()
  expect(await world.statuses()).toEqual({ queued: 6 })
  expect(Object.values(await look())).toEqual([null, null, null, null, null, null])

  const key = (subscriberId: string) => ({ audienceId: audience, subscriberId })
  await world.contacts.remove(db, live, key(left))
  await world.subscribers.delete(db, live, deleted)
  await world.contacts.update(db, live, key(unsubscribed), { status: 'unsubscribed' })
  await world.subscribers.unsubscribe(db, live, everything)
  await world.suppressions.create(db, world.account, { address: `${suppressed}@example.org` })

  const looked = await look()
  const reasonOf = (subscriberId: string) => looked[`${subscriberId}@example.org`]?.reason ?? null
  expect(reasonOf(left)).toBe('The person left the audience before the email was sent.')
  expect(reasonOf(deleted)).toBe('The person left the audience before the email was sent.')
  expect(reasonOf(unsubscribed)).toBe('The person unsubscribed before the email was sent.')
  expect(reasonOf(everything)).toBe('The person unsubscribed before the email was sent.')
  expect(reasonOf(suppressed)).toMatch(/suppression list/)
  expect(Object.values(looked).filter((reason) => reason === null)).toHaveLength(1)

  // As the worker writes down what it did not send.
  const emails = await db.selectFrom('email_recipients').select(['email_id', 'address']).execute()
  const at = world.time.clock.now()
  const facts = emails.flatMap(({ email_id: emailId, address }) => {
    const withheld = looked[address]
    return withheld ? [{ kind: 'suppressed' as const, emailId, position: 0, at, ...withheld }] : []
  })
  await recordFacts(db, { outbox: world.outbox }, facts)
  await world.handOver()
  await world.time.advance(1_000)
  await world.run()
  expect(await world.campaigns.statistics(db, live, id)).toMatchObject({
    recipients: 6,
    queued: 0,
    handedOver: 1,
    skipped: { left: 2, unsubscribed: 2, suppressed: 1 },
  })
})

test('who changes their address and unsubscribes while their email is queued is not written to at the old one', async () => {
  const { db, account, live } = world
  const topics = createTopicService({ clock: world.time.clock, guardUsed: guardUsedTopic })
  const topic = await topics.create(db, account, { name: 'Offers', default: 'opt_out' })
  const audience = await world.addAudience(0)
  const [moved = '', contact = '', everything = '', ofTopic = '', removed = ''] = await world.addPeople(audience, 5)
  const id = await world.draft(audience, { topicId: topic.id })
  await world.start(id)
  await world.run()

  for (const subscriberId of [moved, contact, everything, ofTopic, removed]) {
    await world.subscribers.update(db, live, subscriberId, { email: `${subscriberId}@new.example` })
  }
  const key = (subscriberId: string) => ({ audienceId: audience, subscriberId })
  await world.contacts.update(db, live, key(contact), { status: 'unsubscribed' })
  await world.subscribers.unsubscribe(db, live, everything)
  const choices = createSubscriberTopicService({ clock: world.time.clock, outbox: world.outbox })
  await choices.update(db, live, ofTopic, [{ topicId: topic.id, subscribed: false }])
  await world.contacts.remove(db, live, key(removed))

  const looked = await look()
  const reasonOf = (subscriberId: string) => looked[`${subscriberId}@example.org`]?.reason ?? null
  expect(reasonOf(moved)).toBeNull()
  expect(reasonOf(contact)).toBe('The person unsubscribed before the email was sent.')
  expect(reasonOf(everything)).toBe('The person unsubscribed before the email was sent.')
  expect(reasonOf(ofTopic)).toBe(
    'The person left the topic of the email, or it was deleted, before the email was sent.',
  )
  expect(reasonOf(removed)).toBe('The person left the audience before the email was sent.')
})
