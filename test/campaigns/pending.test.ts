import { afterAll, afterEach, beforeEach, expect, test } from 'vitest'
import { inTransaction } from '../../server/database/connection.ts'
import { lockDue } from '../../server/email-delivery/sending-queries.ts'
import { createRenderer } from '../../server/rendering/renderer.ts'
import { type CampaignWorld, createCampaignWorld } from '../support/worlds/campaigns.ts'

const renderer = createRenderer()
afterAll(() => renderer[Symbol.asyncDispose]())

let world: CampaignWorld
let audienceId: string
beforeEach(async () => {
  world = await createCampaignWorld(renderer)
  audienceId = await world.addAudience(2)
  const doubleOptIn = { from: 'Shop <news@shop.test>' }
  await world.audiences.update(world.db, world.live, audienceId, { doubleOptIn })
})
afterEach(() => world[Symbol.asyncDispose]())

const add = (email: string) => world.contacts.add(world.db, world.live, audienceId, { email })

test('a campaign lists nobody who has not confirmed when it starts', async () => {
  await add('pending@example.org')
  const confirmed = await add('confirmed@example.org')
  await world.contacts.update(world.db, world.live, confirmed, { status: 'active' })
  const id = await world.draft(audienceId)
  await world.start(id)
  await world.run()
  expect(await world.statuses()).toEqual({ queued: 3 })
  const { data } = await world.emails.list(world.db, world.live, { campaign: id, limit: 10 })
  expect(data).toHaveLength(3)
  expect(data.flatMap(({ to }) => to)).toContain('confirmed@example.org')
})

test('who was removed and added again meanwhile, and has not confirmed, is not written to', async () => {
  const { db, live, contacts, emails } = world
  const again = async (email: string) => {
    await contacts.remove(db, live, await contactOf(email))
    await add(email)
  }
  const contactOf = async (email: string) => {
    const { data } = await contacts.list(db, live.accountId, audienceId, { search: email, limit: 1 })
    const [{ subscriberId } = { subscriberId: '' }] = data
    return { audienceId, subscriberId }
  }
  const addresses = ['listed@example.org', 'queued@example.org']
  for (const email of addresses) await contacts.update(db, live, await add(email), { status: 'active' })
  const id = await world.draft(audienceId)
  await world.start(id)
  // Its recipients are listed, and no emails are made.
  await world.turn()
  expect(await world.statuses()).toEqual({ waiting: 4 })
  await again('listed@example.org')
  await world.run()
  expect(await world.statuses()).toEqual({ queued: 3, skipped: 1 })
  await again('queued@example.org')
  const { data } = await emails.list(db, live, { campaign: id, limit: 10 })
  const due = await inTransaction(db, (trx) =>
    lockDue(
      trx,
      data.map((email) => email.id),
    ),
  )
  const withheld = due.flatMap(({ recipients }) => recipients.filter((recipient) => recipient.withheld !== null))
  expect(withheld).toMatchObject([
    {
      address: 'queued@example.org',
      withheld: { withheldFor: 'unsubscribed', reason: 'The person had not confirmed before the email was sent.' },
    },
  ])
})
