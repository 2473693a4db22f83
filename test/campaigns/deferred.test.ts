import { afterAll, afterEach, beforeEach, expect, test } from 'vitest'
import { inTransaction } from '../../server/database/connection.ts'
import { recordFacts } from '../../server/email-delivery/record-facts.ts'
import { markSending } from '../../server/email-delivery/sending-queries.ts'
import { createRenderer } from '../../server/rendering/renderer.ts'
import { type CampaignWorld, createCampaignWorld } from '../support/worlds/campaigns.ts'

/* Who is still tried when a campaign is completed, and after that. */

const renderer = createRenderer()
afterAll(() => renderer[Symbol.asyncDispose]())

let world: CampaignWorld
beforeEach(async () => {
  world = await createCampaignWorld(renderer)
})
afterEach(() => world[Symbol.asyncDispose]())

const statistics = (id: string) => world.campaigns.statistics(world.db, world.live, id)

async function emailsOf(id: string): Promise<string[]> {
  const rows = await world.db.selectFrom('emails').select('id').where('campaign_id', '=', id).orderBy('id').execute()
  return rows.map((row) => row.id)
}

/** Starts a campaign to some people, one of whom leaves before their turn, and queues the others. */
async function queued(people: number): Promise<string> {
  const audienceId = await world.addAudience(people)
  const [left = ''] = await world.addPeople(audienceId, 1)
  const id = await world.draft(audienceId)
  await world.start(id)
  await world.turn()
  await world.contacts.remove(world.db, world.live, { audienceId, subscriberId: left })
  await world.run()
  return id
}

/** Has a mail server refuse an email for now. */
async function defer(emailId = ''): Promise<void> {
  const begun = [{ emailId, position: 0 }]
  await inTransaction(world.db, (trx) => markSending(trx, { begun, resent: [], at: world.time.clock.now() }))
  const fact = { kind: 'deferred', reason: 'Full', reply: '452 Full', host: 'mx.example.org', unknown: false } as const
  await recordFacts(world.db, { outbox: world.outbox }, [{ ...fact, emailId, position: 0, at: world.time.clock.now() }])
}

/** Has the campaigns notice what became of their emails. */
async function settle(): Promise<void> {
  await world.time.advance(1_000)
  await world.run()
}

test('a campaign that is completed tells how many are still tried and how many were skipped, and its statistics go on to tell it', async () => {
  const id = await queued(3)
  const [one, two] = await emailsOf(id)
  await defer(one)
  await settle()
  expect(await statistics(id)).toMatchObject({ queued: 2, handedOver: 1, deferred: 1 })
  await defer(two)
  await world.handOver()
  await settle()

  const counts = { total: 4, sent: 3, failed: 1, deferred: 2, skipped: 1 }
  expect((await world.events()).at(-1)).toEqual({ type: 'campaign.completed', recipients: counts })
  expect(await statistics(id)).toMatchObject({ handedOver: 3, deferred: 2, skipped: { left: 1 } })
  // Those that were deferred are taken at last.
  await world.db.updateTable('email_recipients').set({ status: 'queued' }).where('status', '=', 'deferred').execute()
  await world.handOver()
  expect(await statistics(id)).toMatchObject({ handedOver: 3, deferred: 0, emails: { sent: 3 } })
})

test('a campaign counts as still tried neither what waits for its first attempt nor emails of other campaigns', async () => {
  const other = await queued(1)
  await defer((await emailsOf(other))[0])
  const id = await queued(2)
  await settle()

  expect(await statistics(other)).toMatchObject({ handedOver: 1, deferred: 1 })
  expect(await statistics(id)).toMatchObject({ queued: 2, handedOver: 0, deferred: 0 })
  await world.handOver()
  await settle()
  const { recipients } = (await world.events()).at(-1) ?? {}
  expect(recipients).toEqual({ total: 3, sent: 2, failed: 1, deferred: 0, skipped: 1 })
})
