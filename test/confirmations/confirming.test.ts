import { afterAll, beforeAll, expect, test } from 'vitest'
import { findBrand } from '../../server/accounts/brand.ts'
import { type Confirmations, createConfirmations } from '../../server/confirmations/confirm.ts'
import { inTransaction } from '../../server/database/connection.ts'
import type { ConfirmationRef } from '../../server/message/confirmation-tokens.ts'
import { createMailTokens } from '../../server/message/mail-tokens.ts'
import { newId } from '../../server/shared/ids.ts'
import { suppressUnsubscribed } from '../../server/suppressions/unsubscribed.ts'
import { createEmailWorld, type EmailWorld } from '../support/worlds/emails.ts'

/*
 * The effect of a confirmation link, and all that may have happened since it was sent.
 */

let world: EmailWorld
let links: Confirmations
let audienceId: string
/** People whose changes are too many. */
const tooMany = new Set<string>()

beforeAll(async () => {
  world = await createEmailWorld()
  const { db, live, outbox, time, suppressions, confirmationTokens, audiences } = world
  links = createConfirmations({
    clock: time.clock,
    outbox,
    handle: db,
    tokens: confirmationTokens,
    findBrand,
    findSuppressed: suppressions.find,
    takeChange: (person) => !tooMany.has(person),
  })
  const doubleOptIn = { from: 'Shop <news@shop.test>' }
  audienceId = (await audiences.create(db, live, { name: 'Readers', doubleOptIn })).id
})
afterAll(() => world.end())

let counter = 0

/** Adds a person, and returns the token of the link they got. */
async function ask({ email = `person-${++counter}@example.org`, mode = 'live' as const as 'live' | 'test' } = {}) {
  const { db, account, contacts, confirmationTokens, time } = world
  const contact = await contacts.add(db, { accountId: account, mode }, audienceId, { email })
  const { subscriberId } = contact
  const ref: ConfirmationRef = {
    accountId: account,
    audienceId,
    subscriberId,
    address: email,
    mode,
    askedAt: time.clock.now(),
  }
  return { email, contact, ref, token: confirmationTokens.make(ref) }
}

const statusOf = async (contact: { audienceId: string; subscriberId: string }) =>
  (await world.contacts.get(world.db, world.account, contact)).status

test('a link to confirm shows a page that changes nothing, and confirms once', async () => {
  const { email, contact, token } = await ask()
  expect(await links.show(token)).toMatchObject({ state: 'asks', audienceName: 'Readers' })
  expect(await links.show(token)).toMatchObject({ state: 'asks' })
  expect(await statusOf(contact)).toBe('pending')
  const states = await Promise.all([links.confirm(token), links.confirm(token)])
  expect(states).toMatchObject([{ state: 'confirmed' }, { state: 'confirmed' }])
  expect(await statusOf(contact)).toBe('active')
  expect(await links.confirm(token)).toMatchObject({ state: 'confirmed' })
  const { subscriberId } = contact
  const updated = ['contact.updated', { subscriberId, audienceId, email, changes: ['status'] }]
  expect((await world.emitted()).filter(([type]) => type === 'contact.updated')).toEqual([updated])
})

test('a link to confirm confirms the person and the audience that it is made for, and no other', async () => {
  const { db, live, contacts, audiences } = world
  const [one, other] = [await ask(), await ask()]
  const doubleOptIn = { from: 'Shop <news@shop.test>' }
  const elsewhere = await audiences.create(db, live, { name: 'Other', doubleOptIn })
  const there = await contacts.add(db, live, elsewhere.id, { email: one.email })
  await links.confirm(one.token)
  expect(await statusOf(one.contact)).toBe('active')
  expect(await statusOf(other.contact)).toBe('pending')
  expect(await statusOf(there)).toBe('pending')
})

test('a link to confirm that was forged, cut or made for something else is none', async () => {
  const { token, ref } = await ask()
  const unsubscribe = createMailTokens(Buffer.alloc(32, 5)).unsubscribe({
    emailId: newId('email', new Date()),
    position: 0,
    accountId: ref.accountId,
    address: ref.address,
  })
  const flipped = `${token.startsWith('A') ? 'B' : 'A'}${token.slice(1)}`
  for (const forged of ['', 'x', token.slice(0, -1), `${token}A`, flipped, unsubscribe, 'A'.repeat(200)]) {
    expect(await links.show(forged)).toBeNull()
    expect(await links.confirm(forged)).toBeNull()
  }
  // Of an account that is gone.
  const gone = world.confirmationTokens.make({ ...ref, accountId: newId('account', new Date()) })
  expect(await links.show(gone)).toBeNull()
  expect(await links.confirm(gone)).toBeNull()
})

test('a link to confirm holds for 7 days, and a new one begins anew', async () => {
  const { db, live, contacts, confirmationTokens, time } = world
  const { contact, ref, token } = await ask()
  await time.advance(7 * 86_400_000)
  expect(await links.show(token)).toMatchObject({ state: 'asks' })
  await time.advance(1_000)
  expect(await links.show(token)).toMatchObject({ state: 'expired' })
  expect(await links.confirm(token)).toMatchObject({ state: 'expired' })
  expect(await statusOf(contact)).toBe('pending')
  await contacts.askToConfirm(db, live, contact)
  const again = confirmationTokens.make({ ...ref, askedAt: time.clock.now() })
  expect(await links.confirm(again)).toMatchObject({ state: 'confirmed' })
  // The older one says so too.
  expect(await links.show(token)).toMatchObject({ state: 'confirmed' })
})

test.each<[string, (person: Awaited<ReturnType<typeof ask>>) => Promise<unknown>]>([
  ['the contact was removed', ({ contact }) => world.contacts.remove(world.db, world.live, contact)],
  ['the person was deleted', ({ contact }) => world.subscribers.delete(world.db, world.live, contact.subscriberId)],
  [
    'the person has another address, whose owner was not asked',
    ({ contact }) =>
      world.subscribers.update(world.db, world.live, contact.subscriberId, { email: `new-${contact.email}` }),
  ],
])('a link to confirm does nothing when %s', async (_, happens) => {
  const person = await ask()
  await happens(person)
  expect(await links.show(person.token)).toMatchObject({ state: 'gone' })
  expect(await links.confirm(person.token)).toMatchObject({ state: 'gone' })
})

test('a link to confirm does nothing when the audience was deleted', async () => {
  const { db, live, audiences, contacts, confirmationTokens, account, time } = world
  const own = await audiences.create(db, live, { name: 'Short', doubleOptIn: { from: 'news@shop.test' } })
  const address = `person-${++counter}@example.org`
  const { subscriberId } = await contacts.add(db, live, own.id, { email: address })
  const ref = { accountId: account, audienceId: own.id, subscriberId, address, mode: 'live' as const }
  await audiences.delete(db, live, own.id)
  expect(await links.confirm(confirmationTokens.make({ ...ref, askedAt: time.clock.now() }))).toMatchObject({
    state: 'gone',
  })
})

test('a link to confirm does nothing for a person who unsubscribed since', async () => {
  const { db, live, contacts, subscribers } = world
  const [left, all] = [await ask(), await ask()]
  await contacts.update(db, live, left.contact, { status: 'unsubscribed' })
  await subscribers.unsubscribe(db, live, all.contact.subscriberId)
  for (const { token, contact } of [left, all]) {
    expect(await links.show(token)).toMatchObject({ state: 'unsubscribed' })
    expect(await links.confirm(token)).toMatchObject({ state: 'unsubscribed' })
    expect(await statusOf(contact)).toBe('unsubscribed')
  }
})

test('a link to confirm does nothing for an address on the suppression list', async () => {
  const { db, account, suppressions } = world
  const { email, contact, token } = await ask()
  await suppressions.create(db, account, { address: email })
  expect(await links.show(token)).toMatchObject({ state: 'suppressed' })
  expect(await links.confirm(token)).toMatchObject({ state: 'suppressed' })
  expect(await statusOf(contact)).toBe('pending')
})

test('a link to confirm takes back an unsubscription by a link of before it was asked for, and none of since', async () => {
  const { db, account, suppressions, time } = world
  const leave = (address: string) =>
    inTransaction(db, (trx) =>
      suppressUnsubscribed(trx, {
        accountId: account,
        address,
        emailId: newId('email', new Date()),
        at: time.clock.now(),
      }),
    )
  const email = `person-${++counter}@example.org`
  await leave(email)
  await time.advance(60_000)
  const { contact, token } = await ask({ email })
  expect(await links.confirm(token)).toMatchObject({ state: 'confirmed' })
  expect(await statusOf(contact)).toBe('active')
  expect(await suppressions.find(db, account, [email])).toEqual(new Map())

  const late = await ask()
  await time.advance(60_000)
  await leave(late.email)
  expect(await links.confirm(late.token)).toMatchObject({ state: 'unsubscribed' })
  expect(await statusOf(late.contact)).toBe('pending')
})

test('a link to confirm of an email of test mode confirms recipients of the simulator, and nobody else', async () => {
  const [person, simulated] = [
    await ask({ mode: 'test' }),
    await ask({ mode: 'test', email: 'delivered+double@simulator.test' }),
  ]
  expect(await links.show(person.token)).toMatchObject({ state: 'test' })
  expect(await links.confirm(person.token)).toMatchObject({ state: 'test' })
  expect(await statusOf(person.contact)).toBe('pending')
  expect(await links.confirm(simulated.token)).toMatchObject({ state: 'confirmed' })
  expect(await statusOf(simulated.contact)).toBe('active')
})

test('a link to confirm is not followed too often for one address', async () => {
  const { email, contact, token } = await ask()
  tooMany.add(`${world.account} ${email}`)
  expect(await links.confirm(token)).toBe('too often')
  expect(await statusOf(contact)).toBe('pending')
})
