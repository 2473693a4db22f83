import { describe, expect, test } from 'vitest'
import { isDone, type MailEngine } from '../support/mail-engine.ts'
import type { SmtpReaction } from '../support/scripted-smtp-session.ts'
import { addCampaign, type Campaign, pass } from '../support/worlds/campaign-of-emails.ts'
import { age, isPutBack, startWithoutServers, untilDone } from '../support/worlds/unusable-servers.ts'

const secondsOfDay = 86_400

describe('a pause of four days', () => {
  /** Pauses and resumes, and lets the worker look at all emails before and after. */
  async function pauseForDays(engine: MailEngine, campaign: Campaign): Promise<void> {
    await campaign.set('paused')
    await pass(engine, 120)
    await pass(engine, 4 * secondsOfDay)
    await campaign.set('sending')
    await pass(engine, 61)
  }

  test('a pause of four days takes nothing from the 72 hours of emails that wait for the servers of their domain', async () => {
    const { engine, startServer, untilUnusable } = await startWithoutServers('direct')
    const campaign = await addCampaign(engine)
    const ids = await campaign.send(['n0@one.test', 'n1@one.test', 'n2@one.test'])
    await untilUnusable(1)
    await pass(engine, 61)
    for (const id of ids) {
      expect(await engine.statusOf(id, isPutBack)).toMatchObject({ recipients: ['deferred'], attempts: [0] })
    }
    await pauseForDays(engine, campaign)
    for (const id of ids) {
      expect(await engine.statusOf(id, isPutBack)).toMatchObject({ recipients: ['deferred'], attempts: [0] })
    }
    // The days before and after count as ever.
    await age(engine, 2 * secondsOfDay)
    await pass(engine, 61)
    await startServer()
    await untilDone(engine, ids)
    for (const id of ids)
      expect(await engine.statusOf(id, isDone)).toMatchObject({ status: 'delivered', attempts: [1] })
  })

  test('a pause of four days takes nothing from the 72 hours of a retry whose domain is away when it ends', async () => {
    const { engine, startServer, untilUnusable } = await startWithoutServers('direct')
    const server = await startServer()
    server.at('rcpt', '451 4.7.1 Greylisted')
    const campaign = await addCampaign(engine)
    const ids = await campaign.send(['n0@one.test', 'n1@one.test'])
    for (const id of ids) {
      // While the first is in its conversation, there is no room for the second.
      while ((await engine.statusOf(id, isPutBack)).recipients[0] !== 'deferred') await pass(engine, 6)
    }
    await server.stop()
    await pauseForDays(engine, campaign)
    await untilUnusable(1)
    await pass(engine, 61)
    for (const id of ids) {
      expect(await engine.statusOf(id, isPutBack)).toMatchObject({ recipients: ['deferred'], attempts: [1] })
    }
    await startServer()
    await untilDone(engine, ids)
    for (const id of ids)
      expect(await engine.statusOf(id, isDone)).toMatchObject({ status: 'delivered', attempts: [2] })
  })

  test('a pause of four days only puts off that an email is given up, also of two pauses', async () => {
    const { engine, untilUnusable } = await startWithoutServers('direct')
    const campaign = await addCampaign(engine)
    const ids = await campaign.send(['n0@one.test', 'n1@one.test'])
    await untilUnusable(1)
    await pass(engine, 61)
    for (let pauses = 0; pauses < 2; pauses++) {
      await pauseForDays(engine, campaign)
      await age(engine, secondsOfDay)
    }
    await pass(engine, 61)
    for (const id of ids) expect(await engine.statusOf(id, isPutBack)).toMatchObject({ recipients: ['deferred'] })
    await age(engine, secondsOfDay)
    await untilDone(engine, ids)
    for (const id of ids) {
      expect(await engine.statusOf(id, isDone)).toMatchObject({ status: 'failed' })
      expect((await engine.timelineOf(id)).at(-1)?.detail).toMatch(/^Given up after 72 hours/)
    }
  })
})

test('an email whose domain is looked up when its campaign is paused is given back at once, as nothing was tried', async () => {
  const { engine, addName, untilLookedUp } = await startWithoutServers('direct')
  addName('silent.test', 'silence')
  const campaign = await addCampaign(engine)
  const [id = ''] = await campaign.send(['ada@silent.test'])
  await untilLookedUp('silent.test')
  await campaign.set('paused')
  const given = await engine.statusOf(id, isPutBack)
  expect(given).toEqual({ status: 'queued', recipients: ['queued'], attempts: [0] })
  expect(await engine.eventsOf(id)).toEqual([])
  expect(engine.unusable).toBe(0)
})

test('an email whose first mail server breaks off in a pause goes to no other one before it is resumed, and is not lost', async () => {
  const { engine, startServer, addName } = await startWithoutServers('direct')
  const [first, second] = [await startServer(), await startServer('127.0.0.2')]
  const MX = ['one.test', 'two.test'].map((exchange, priority) => ({ exchange, priority }))
  addName('both.test', { MX })
  const held = Promise.withResolvers<SmtpReaction>()
  first.at('mail', () => held.promise)
  const campaign = await addCampaign(engine)
  const [ada = ''] = await campaign.send(['ada@both.test'])
  await first.reached('mail')
  // It waits for the only connection.
  const [bob = ''] = await campaign.send(['bob@both.test'])
  await engine.statusOf(bob, ({ recipients }) => recipients[0] === 'sending')
  await campaign.set('paused')
  await engine.statusOf(bob, ({ recipients }) => recipients[0] === 'queued')
  held.resolve({ next: 'reset' })
  expect(await engine.statusOf(ada, isPutBack)).toEqual({ status: 'sending', recipients: ['deferred'], attempts: [1] })
  await pass(engine, 3_600)
  expect([first.messages.length, second.connections]).toEqual([0, 0])
  first.at('mail', () => undefined)
  await campaign.set('sending')
  await pass(engine, 61)
  await untilDone(engine, [ada, bob])
  expect(await engine.statusOf(ada, isDone)).toMatchObject({ status: 'delivered', attempts: [2] })
  expect(await engine.statusOf(bob, isDone)).toMatchObject({ status: 'delivered', attempts: [1] })
  expect([first.messages.length, second.connections]).toEqual([2, 0])
})
