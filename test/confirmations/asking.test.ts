import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Audience } from '../../contract/audiences.ts'
import { inTransaction } from '../../server/database/connection.ts'
import { newId } from '../../server/shared/ids.ts'
import type { Scope } from '../../server/shared/scope.ts'
import { refusal } from '../support/worlds/audiences.ts'
import { createEmailWorld, type EmailWorld, good, hourMs } from '../support/worlds/emails.ts'

/*
 * Adding people to an audience with double opt-in: they are pending, and asked by an email of the same transaction.
 */

let world: EmailWorld
const doubleOptIn = { from: 'Shop <news@shop.test>', subject: 'Is that you?', text: 'Hello from <Shop> & friends.' }

beforeAll(async () => {
  world = await createEmailWorld()
})
afterAll(() => world.end())

let counter = 0
const newAddress = () => `person-${++counter}@example.org`

function newAudience(settings: Partial<Parameters<EmailWorld['audiences']['create']>[2]> = {}): Promise<Audience> {
  return world.audiences.create(world.db, world.live, { name: 'Readers', doubleOptIn, ...settings })
}

/** The emails to an address, the last first. */
async function emailsTo(address: string, scope: Scope = world.live) {
  const { data } = await world.emails.list(world.db, scope, { recipient: address, limit: 20 })
  return Promise.all(data.map(({ id }) => world.emails.get(world.db, scope, id)))
}

test('a contact that is added is pending, and gets an email with a link of their own', async () => {
  const { db, live, contacts, emitted, confirmationTokens, account, time } = world
  const { id: audienceId } = await newAudience()
  const email = newAddress()
  const added = await contacts.add(db, live, audienceId, { email })
  const at = time.clock.now()
  expect(added).toMatchObject({ status: 'pending', confirmationSentAt: at.toISOString() })
  expect(await contacts.get(db, account, added)).toEqual(added)
  const data = { subscriberId: added.subscriberId, audienceId, email, status: 'pending' }
  expect(await emitted()).toContainEqual(['contact.created', data])
  const [sent, ...others] = await emailsTo(email)
  expect(others).toEqual([])
  expect(sent).toMatchObject({
    from: doubleOptIn.from,
    subject: 'Is that you?',
    status: 'queued',
    audienceId: null,
    tags: ['double-opt-in'],
    metadata: { audienceId },
    trackClicks: false,
  })
  expect(sent?.html).toContain('Hello from &lt;Shop&gt; &amp; friends.')
  const [, token = ''] = /confirm\/(\S+)/.exec(sent?.text ?? '') ?? []
  expect(sent?.html).toContain(`/confirm/${token}"`)
  const ref = { accountId: account, audienceId, subscriberId: added.subscriberId, address: email, mode: 'live' }
  expect(confirmationTokens.read(token)).toEqual({ ...ref, askedAt: at })
})

test('a contact that is added is not there without the email, nor the email without the contact', async () => {
  const { db, live, contacts, subscribers } = world
  const { id: audienceId } = await newAudience()
  const email = newAddress()
  const undone = inTransaction(db, async (trx) => {
    await contacts.add(trx, live, audienceId, { email })
    expect(await world.emails.list(trx, live, { recipient: email, limit: 1 })).toMatchObject({ data: [{}] })
    throw new Error('killed in between')
  })
  await expect(undone).rejects.toThrow('killed in between')
  expect(await emailsTo(email)).toEqual([])
  expect((await subscribers.list(db, live.accountId, { email, limit: 1 })).data).toEqual([])
})

test('a contact that is added is active at once where the audience asks nobody', async () => {
  const { db, live, contacts } = world
  const { id } = await newAudience({ doubleOptIn: null })
  const email = newAddress()
  expect(await contacts.add(db, live, id, { email })).toMatchObject({ status: 'active', confirmationSentAt: null })
  expect(await emailsTo(email)).toEqual([])
})

test('a person who unsubscribed from everything is added as unsubscribed, and not asked', async () => {
  const { db, live, contacts, subscribers } = world
  const email = newAddress()
  const { id } = await subscribers.create(db, live, { email })
  await subscribers.unsubscribe(db, live, id)
  const added = await contacts.add(db, live, (await newAudience()).id, { email })
  expect(added).toMatchObject({ status: 'unsubscribed', confirmationSentAt: null })
  expect(await emailsTo(email)).toEqual([])
})

test('a contact that is added with an address on the suppression list is pending, and gets nothing', async () => {
  const { db, live, contacts, suppressions } = world
  const email = newAddress()
  await suppressions.create(db, live.accountId, { address: email })
  const added = await contacts.add(db, live, (await newAudience()).id, { email })
  expect(added).toMatchObject({ status: 'pending', confirmationSentAt: null })
  expect(await emailsTo(email)).toEqual([])
  await expect(contacts.askToConfirm(db, live, added)).rejects.toMatchObject({
    code: 'confirmation_refused',
    message: expect.stringContaining('suppression list'),
  })
})

test('a contact that is added with a test key is asked by an email of test mode, which goes to nobody', async () => {
  const { db, test: testing, contacts } = world
  const email = newAddress()
  await contacts.add(db, testing, (await newAudience()).id, { email })
  expect(await emailsTo(email)).toEqual([])
  expect(await emailsTo(email, testing)).toMatchObject([{ status: 'validated' }])
})

test('a contact that is added gets no email to the audience, but transactional ones', async () => {
  const { db, live, contacts, emails } = world
  const { id: audienceId } = await newAudience()
  const email = newAddress()
  await contacts.add(db, live, audienceId, { email })
  const toAudience = await emails.send(db, live, { ...good, to: email, audienceId })
  expect(toAudience.status).toBe('suppressed')
  const { recipients } = await emails.get(db, live, toAudience.id)
  expect(recipients[0]).toMatchObject({ status: 'suppressed', reason: expect.stringContaining('has not confirmed') })
  expect(await emails.send(db, live, { ...good, to: email })).toMatchObject({ status: 'queued' })
})

test('contacts of a batch are not asked when their address is on the suppression list, not even by a link to leave', async () => {
  const { db, live, contacts } = world
  const { id: audienceId } = await newAudience()
  const [left, asked] = [newAddress(), newAddress()]
  const suppression = { account_id: live.accountId, address: left, address_key: left, reason: 'unsubscribe' } as const
  await db
    .insertInto('suppressions')
    .values({ ...suppression, id: newId('suppression', new Date()), created_at: new Date() })
    .execute()
  await contacts.addBatch(db, live, audienceId, { contacts: [{ email: left }, { email: asked }] })
  expect(await emailsTo(left)).toEqual([])
  expect(await emailsTo(asked)).toHaveLength(1)
})

test('contacts of a batch are pending and not asked when no email can be written to their address', async () => {
  const { db, live, contacts } = world
  const { id: audienceId } = await newAudience()
  const [odd, other] = ['x@xn--a.com', newAddress()]
  await contacts.addBatch(db, live, audienceId, { contacts: [{ email: odd }, { email: other }] })
  expect(await contacts.list(db, live.accountId, audienceId, { status: 'pending', limit: 10 })).toMatchObject({
    data: expect.arrayContaining([expect.objectContaining({ email: odd, confirmationSentAt: null })]),
  })
  expect(await emailsTo(other)).toHaveLength(1)
})

test('contacts of a batch are pending and asked, behind what is sent singly, unless they are said to be active', async () => {
  const { db, live, contacts } = world
  const { id: audienceId } = await newAudience()
  const [one, two, confirmed] = [newAddress(), newAddress(), newAddress()]
  await contacts.addBatch(db, live, audienceId, { contacts: [{ email: one }, { email: two }, { email: one }] })
  await contacts.addBatch(db, live, audienceId, { contacts: [{ email: confirmed }], status: 'active' })
  const { data } = await contacts.list(db, live.accountId, audienceId, { limit: 10 })
  const found = new Map(data.map((contact) => [contact.email, contact]))
  for (const email of [one, two]) {
    expect(found.get(email)).toMatchObject({ status: 'pending', confirmationSentAt: expect.any(String) })
    expect(await emailsTo(email)).toMatchObject([{ subject: 'Is that you?' }])
  }
  expect(found.get(confirmed)).toMatchObject({ status: 'active', confirmationSentAt: null })
  expect(await emailsTo(confirmed)).toEqual([])
  // Who is there already is not asked again.
  await contacts.addBatch(db, live, audienceId, { contacts: [{ email: one, firstName: 'A' }], conflict: 'update' })
  expect(await emailsTo(one)).toHaveLength(1)
  const pending = await contacts.list(db, live.accountId, audienceId, { status: 'pending', limit: 10 })
  expect(pending.data.map(({ email }) => email).toSorted()).toEqual([one, two].toSorted())
  // Leaving is not confirming.
  const leaving = { contacts: [{ email: one }], conflict: 'update' as const, status: 'unsubscribed' as const }
  expect(await contacts.addBatch(db, live, audienceId, leaving)).toMatchObject([{ outcome: 'updated' }])
})

test('contacts of a batch cannot be pending where the audience asks nobody, and nothing of them is written', async () => {
  const { db, live, contacts, subscribers } = world
  const { id } = await newAudience({ doubleOptIn: null })
  const email = newAddress()
  const results = await contacts.addBatch(db, live, id, { contacts: [{ email }, { email }], status: 'pending' })
  const refused = { outcome: 'refused', reason: expect.stringContaining('no doubleOptIn') }
  expect(results).toEqual([refused, refused])
  expect((await subscribers.list(db, live.accountId, { email, limit: 1 })).data).toEqual([])
})

test('a pending contact is asked again after 10 minutes, and 5 times in all', async () => {
  const { db, live, contacts, time } = world
  const { id: audienceId } = await newAudience()
  const email = newAddress()
  const key = await contacts.add(db, live, audienceId, { email })
  await expect(contacts.askToConfirm(db, live, key)).rejects.toMatchObject({
    code: 'confirmation_refused',
    message: expect.stringContaining('less than 10 minutes ago'),
  })
  await time.advance(599_000)
  expect(await refusal(contacts.askToConfirm(db, live, key))).toBe('confirmation_refused')
  for (const sent of [2, 3, 4, 5]) {
    await time.advance(600_000)
    // Two at once: the second finds that the first has asked.
    const both = await Promise.allSettled([1, 2].map(() => contacts.askToConfirm(db, live, key)))
    expect(both.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
    expect(await emailsTo(email)).toHaveLength(sent)
  }
  await time.advance(24 * hourMs)
  await expect(contacts.askToConfirm(db, live, key)).rejects.toMatchObject({
    code: 'confirmation_refused',
    message: expect.stringContaining('5 emails'),
  })
})

test('a pending contact is asked by an audience that still asks, and only while it is pending', async () => {
  const { db, live, account, stranger, contacts, audiences } = world
  const { id: audienceId } = await newAudience()
  const key = await contacts.add(db, live, audienceId, { email: newAddress() })
  expect(await refusal(contacts.askToConfirm(db, { accountId: stranger, mode: 'live' }, key))).toBe('not_found')
  expect(await refusal(contacts.askToConfirm(db, live, { ...key, audienceId: (await newAudience()).id }))).toBe(
    'not_found',
  )
  await audiences.update(db, live, audienceId, { doubleOptIn: null })
  await expect(contacts.askToConfirm(db, live, key)).rejects.toMatchObject({
    code: 'confirmation_refused',
    message: expect.stringContaining('asks nobody'),
  })
  expect(await contacts.get(db, account, key)).toMatchObject({ status: 'pending' })
  await contacts.update(db, live, key, { status: 'active' })
  expect(await refusal(contacts.askToConfirm(db, live, key))).toBe('contact_not_pending')
})

test('a pending contact is not made active by a test key in any way, and no contact is made pending', async () => {
  const { db, live, test: testing, account, contacts, audiences } = world
  const { id: audienceId } = await newAudience()
  const email = newAddress()
  const key = await contacts.add(db, live, audienceId, { email })
  const active = { contacts: [{ email: newAddress() }], status: 'active' as const }
  for (const call of [
    () => contacts.update(db, testing, key, { status: 'active' }),
    () => contacts.addBatch(db, testing, audienceId, active),
    () => audiences.update(db, testing, audienceId, { doubleOptIn: null }),
  ]) {
    expect(await refusal(call())).toBe('authentication_error')
  }
  expect(await contacts.get(db, account, key)).toMatchObject({ status: 'pending' })
  expect(await refusal(contacts.update(db, live, key, { status: 'pending' }))).toBe('rule_violation')
  const { subscribers } = world
  expect(await refusal(subscribers.update(db, live, key.subscriberId, { status: 'pending' }))).toBe('rule_violation')
})

test('who is active where people confirm gets another address with a live key alone', async () => {
  const { db, live, test: testing, contacts, subscribers } = world
  const asking = await newAudience()
  const asksNobody = await newAudience({ doubleOptIn: null })
  const email = newAddress()
  const { subscriberId } = await contacts.add(db, live, asksNobody.id, { email })
  const pending = await contacts.add(db, live, asking.id, { email })
  // Nobody has confirmed, and the link of the former address confirms no other.
  const second = newAddress()
  expect(await subscribers.update(db, testing, subscriberId, { email: second })).toMatchObject({ email: second })

  await contacts.update(db, live, pending, { status: 'active' })
  const third = newAddress()
  await expect(subscribers.update(db, testing, subscriberId, { email: third })).rejects.toMatchObject({
    code: 'authentication_error',
    message: expect.stringContaining('active in an audience with double opt-in needs a live key'),
  })
  expect((await contacts.get(db, live.accountId, pending)).email).toBe(second)
  const same = { email: second.toUpperCase(), firstName: 'Ada' }
  expect(await subscribers.update(db, testing, subscriberId, same)).toMatchObject({ firstName: 'Ada' })
  expect(await subscribers.update(db, live, subscriberId, { email: third })).toMatchObject({ email: third })
  expect(await contacts.get(db, live.accountId, pending)).toMatchObject({ email: third, status: 'active' })
})

test('the settings of an audience are shown, kept, replaced and taken away', async () => {
  const { db, live, account, audiences, time } = world
  const { id } = await newAudience({ doubleOptIn: { from: doubleOptIn.from } })
  const shown = await audiences.get(db, account, id)
  expect(shown.doubleOptIn).toEqual({ from: doubleOptIn.from, subject: null, text: null })
  await time.advance(hourMs)
  expect(await audiences.update(db, live, id, { doubleOptIn: { from: doubleOptIn.from } })).toEqual(shown)
  // A name is no matter of the key.
  expect((await audiences.update(db, world.test, id, { name: 'News' })).doubleOptIn).toEqual(shown.doubleOptIn)
  expect((await audiences.update(db, live, id, { doubleOptIn })).doubleOptIn).toEqual(doubleOptIn)
  expect((await audiences.update(db, live, id, { doubleOptIn: null })).doubleOptIn).toBeNull()
})

test('the settings of an audience name an address of a verified domain, also later', async () => {
  const { db, live, contacts, domains, subscribers } = world
  const elsewhere = { doubleOptIn: { from: 'news@elsewhere.test' } }
  const details = [expect.objectContaining({ path: 'body.doubleOptIn.from' })]
  await expect(newAudience(elsewhere)).rejects.toMatchObject({ code: 'domain_not_verified', details })
  await expect(newAudience({ doubleOptIn: { from: 'nobody' } })).rejects.toMatchObject({ details })
  const domain = await domains.create(db, live, { name: 'elsewhere.test' })
  const { id } = await newAudience(elsewhere)
  await domains.delete(db, live, domain.id)
  const email = newAddress()
  expect(await refusal(contacts.add(db, live, id, { email }))).toBe('domain_not_verified')
  expect(await refusal(contacts.addBatch(db, live, id, { contacts: [{ email }] }))).toBe('domain_not_verified')
  expect((await subscribers.list(db, live.accountId, { email, limit: 1 })).data).toEqual([])
})
