import { afterAll, afterEach, beforeEach, expect, test } from 'vitest'
import { findBrand } from '../../server/accounts/brand.ts'
import { guardUsedTopic } from '../../server/campaigns/in-use.ts'
import { countUnsubscribed } from '../../server/email-delivery/count-unsubscribed.ts'
import type { UnsubscribeRef } from '../../server/message/mail-tokens.ts'
import { createRenderer } from '../../server/rendering/renderer.ts'
import { unsubscribeByLink } from '../../server/subscribers/one-click.ts'
import { savePreferences, showPreferences } from '../../server/subscribers/preferences.ts'
import { createSubscriberService } from '../../server/subscribers/service.ts'
import { createSubscriberTopicService } from '../../server/subscribers/topics.ts'
import { createTopicService } from '../../server/topics/service.ts'
import { live } from '../support/scope.ts'
import { type CampaignWorld, createCampaignWorld } from '../support/worlds/campaigns.ts'

/* The links in emails of a campaign, after the address of the person was changed. */

const renderer = createRenderer()
afterAll(() => renderer[Symbol.asyncDispose]())

let world: CampaignWorld
let means: { clock: CampaignWorld['time']['clock']; outbox: CampaignWorld['outbox'] }
let subscribers: ReturnType<typeof createSubscriberService>
let audience: string
let ada: string
beforeEach(async () => {
  world = await createCampaignWorld(renderer)
  means = { clock: world.time.clock, outbox: world.outbox }
  subscribers = createSubscriberService(means)
  audience = await world.addAudience(0)
  ada = (await subscribers.create(world.db, live(world.account), { email: 'ada@old.example', firstName: 'Ada' })).id
  const at = world.time.clock.now()
  await world.db
    .insertInto('contacts')
    .values({
      audience_id: audience,
      subscriber_id: ada,
      account_id: world.account,
      status: 'active',
      created_at: at,
      updated_at: at,
    })
    .execute()
})
afterEach(() => world[Symbol.asyncDispose]())

/** Sends a campaign to Ada. Returns what the link in its email holds, as it was made before the address changes. */
async function sent(topicId?: string): Promise<UnsubscribeRef> {
  const id = await world.draft(audience, topicId === undefined ? {} : { topicId })
  await world.start(id)
  await world.deliver()
  const { id: emailId } = await world.db
    .selectFrom('emails')
    .select('id')
    .where('campaign_id', '=', id)
    .executeTakeFirstOrThrow()
  return { emailId, position: 0, accountId: world.account, address: 'ada@old.example', topicId }
}

const move = () => subscribers.update(world.db, live(world.account), ada, { email: 'ada@new.example' })
const press = (ref: UnsubscribeRef) =>
  unsubscribeByLink(world.db, { ...means, subscribers, count: countUnsubscribed }, ref)
const statusOf = async (id: string) => (await subscribers.get(world.db, world.account, id)).status
const newTopic = () =>
  createTopicService({ ...means, guardUsed: guardUsedTopic }).create(world.db, world.account, {
    name: 'Offers',
    default: 'opt_out',
  })
const topicsLeft = async () => {
  const all = await createSubscriberTopicService(means).list(world.db, world.account, ada)
  return all.flatMap(({ topicId, subscribed }) => (subscribed ? [] : [topicId]))
}

test('the link of a campaign unsubscribes its person after their address was changed, also when the email is deleted', async () => {
  const ref = await sent()
  await move()
  await world.db.deleteFrom('emails').execute()

  expect(await press(ref)).toBe(true)
  expect(await statusOf(ada)).toBe('unsubscribed')
  const suppressed = await world.db.selectFrom('suppressions').select(['address', 'reason']).execute()
  expect(suppressed).toEqual([{ address: 'ada@old.example', reason: 'unsubscribe' }])
})

test('the link of a campaign about a topic leaves the topic alone after the address was changed', async () => {
  const { id } = await newTopic()
  const ref = await sent(id)
  await move()

  expect(await press(ref)).toBe(true)
  expect([await statusOf(ada), await topicsLeft()]).toEqual(['active', [id]])
})

test('the preference page behind the link of a campaign has the topics of its person after the address was changed, and no name', async () => {
  const { id } = await newTopic()
  const ref = await sent(id)
  await move()

  const shown = await showPreferences(world.db, ref, findBrand)
  expect(shown).toMatchObject({ topic: 'Offers', preferences: { firstName: null, topics: [{ isSubscribed: true }] } })
  const change = { firstName: 'Augusta', lastName: null, shown: new Set([id]), wanted: new Set<string>() }
  await savePreferences(world.db, means, ref, change)
  expect(await subscribers.get(world.db, world.account, ada)).toMatchObject({ firstName: 'Ada' })
  expect(await topicsLeft()).toEqual([id])
})

test('the link of a campaign is of who has its address by now, before who had it', async () => {
  const ref = await sent()
  await move()
  const bob = await subscribers.create(world.db, live(world.account), { email: 'ada@old.example' })

  expect(await press(ref)).toBe(true)
  expect([await statusOf(bob.id), await statusOf(ada)]).toEqual(['unsubscribed', 'active'])
})

test('the link of a campaign reaches nobody when it names another account, and works when its person is deleted', async () => {
  const ref = await sent()
  await move()

  const theirs = { ...ref, accountId: world.stranger }
  expect((await showPreferences(world.db, theirs, findBrand))?.preferences).toBeNull()
  expect(await press(theirs)).toBe(true)
  expect(await statusOf(ada)).toBe('active')
  await subscribers.delete(world.db, live(world.account), ada)
  expect((await showPreferences(world.db, ref, findBrand))?.preferences).toBeNull()
  expect(await press(ref)).toBe(true)
})
