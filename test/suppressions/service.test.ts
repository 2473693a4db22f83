import { afterAll, beforeAll, expect, test } from 'vitest'
import { addressKey } from '../../server/message/address.ts'
import { newId } from '../../server/shared/ids.ts'
import { createSuppressionService, type SuppressionService } from '../../server/suppressions/service.ts'
import { live } from '../support/scope.ts'
import { createWorld, refusal, type World } from '../support/worlds/audiences.ts'

let world: World
let suppressions: SuppressionService

beforeAll(async () => {
  world = await createWorld()
  suppressions = createSuppressionService(world)
})
afterAll(() => world.end())

/** An entry as it comes of an email, not of the API. */
async function insert(address: string, reason: 'hard_bounce' | 'complaint' | 'unsubscribe', accountId = world.account) {
  const at = world.clock.now()
  const emailId = newId('email', at)
  const row = { address, address_key: addressKey(address), reason, email_id: emailId, created_at: at }
  await world.db
    .insertInto('suppressions')
    .values({ id: newId('suppression', at), account_id: accountId, ...row })
    .execute()
  return emailId
}

test('putting an address on the list answers the entry, with the address as it was given', async () => {
  const { db, account, clock } = world
  const entry = await suppressions.create(db, account, { address: 'Ada Lovelace <Ada@Example.org>' })
  expect(entry).toEqual({
    id: expect.stringMatching(/^sup_/),
    address: 'Ada@Example.org',
    reason: 'manual',
    source: 'api',
    emailId: null,
    unsubscribedAt: null,
    createdAt: clock.now().toISOString(),
  })
})

test.each([
  ['ada@example.org', 'Ada@EXAMPLE.org'],
  ['bob@bücher.example', 'bob@xn--bcher-kva.example'],
])('putting an address on the list is done once: %s is %s', async (one, other) => {
  const { db, stranger } = world
  await suppressions.create(db, stranger, { address: one })
  expect(await refusal(suppressions.create(db, stranger, { address: other }))).toBe('conflict')
})

test.each(['hard_bounce', 'complaint'] as const)(
  'putting an address on the list is refused where it is there as %s',
  async (reason) => {
    const { db, account } = world
    await insert(`${reason}@example.org`, reason)
    expect(await refusal(suppressions.create(db, account, { address: `${reason}@example.org` }))).toBe('conflict')
  },
)

test('putting an address on the list holds back everything from somebody who had unsubscribed', async () => {
  const { db, account } = world
  await insert('left@example.org', 'unsubscribe')
  expect(await suppressions.create(db, account, { address: 'LEFT@example.org' })).toMatchObject({
    address: 'left@example.org',
    reason: 'manual',
    emailId: null,
  })
})

test.each(['', 'x', 'a@b', 'a@b.example, c@d.example', 'a@b.example\u0000'])(
  'putting an address on the list is refused for %j',
  async (address) => {
    const { db, account } = world
    await expect(suppressions.create(db, account, { address })).rejects.toMatchObject({
      code: 'validation_error',
      details: [{ path: 'body.address' }],
    })
  },
)

test('a list is of one account, newest first, by reason and by address', async () => {
  const { db } = world
  const account = newId('account', world.clock.now())
  await db.insertInto('accounts').values({ id: account, name: 'Listed', plan: 'scale' }).execute()
  const emailId = await insert('one@example.org', 'hard_bounce', account)
  await insert('two@example.org', 'complaint', account)
  await suppressions.create(db, account, { address: 'three@example.org' })
  const listed = async (query: object) => {
    const { data } = await suppressions.list(db, account, { limit: 20, ...query })
    return data.map(({ address }) => address)
  }
  expect(await listed({})).toEqual(['three@example.org', 'two@example.org', 'one@example.org'])
  expect(await listed({ reason: 'complaint' })).toEqual(['two@example.org'])
  expect(await listed({ address: 'ONE@Example.org' })).toEqual(['one@example.org'])
  expect(await listed({ address: 'one@example.org', reason: 'manual' })).toEqual([])
  const { data, nextCursor } = await suppressions.list(db, account, { limit: 2, reason: undefined })
  expect(data).toHaveLength(2)
  const rest = await suppressions.list(db, account, { limit: 2, cursor: nextCursor ?? undefined })
  expect(rest).toMatchObject({ data: [{ address: 'one@example.org', emailId }], nextCursor: null })
})

test('a list by what is no address is refused', async () => {
  const { db, account } = world
  expect(await refusal(suppressions.list(db, account, { limit: 20, address: 'x' }))).toBe('validation_error')
})

test('taking an address off works in whatever letter case, once, and in its own account only', async () => {
  const { db, account, stranger } = world
  await insert('Off@Bücher.example', 'hard_bounce')
  expect(await refusal(suppressions.delete(db, live(stranger), 'off@bücher.example'))).toBe('not_found')
  await suppressions.delete(db, live(account), 'OFF@xn--bcher-kva.EXAMPLE')
  expect(await refusal(suppressions.delete(db, live(account), 'off@bücher.example'))).toBe('not_found')
})

test.each(['x', '\u0000', '@', 'ä', 'a@b\u0000.example'])(
  'taking an address off finds nothing for %j',
  async (address) => {
    expect(await refusal(suppressions.delete(world.db, live(world.account), address))).toBe('not_found')
  },
)

test('of addresses those on the list are found, with why and since when', async () => {
  const { db, account, clock } = world
  await insert('Found@example.org', 'complaint')
  await insert('found-theirs@example.org', 'complaint', world.stranger)
  const found = await suppressions.find(db, account, ['found@example.org', 'found-theirs@example.org', 'x'])
  expect([...found]).toEqual([['found@example.org', { reason: 'complaint', since: clock.now() }]])
  expect(await suppressions.find(db, account, [])).toEqual(new Map())
})
