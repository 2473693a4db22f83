import { sql } from 'kysely'
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import type { Domain } from '../../contract/domains.ts'
import { inTransaction } from '../../server/database/connection.ts'
import { untilSomebodyWaits } from '../support/locks.ts'
import { live } from '../support/scope.ts'
import { refusal } from '../support/worlds/audiences.ts'
import { createDomainWorld, type DomainWorld, publish, withdraw } from '../support/worlds/domains.ts'
import { keyNamesOf, keyRecordsOf, signingAsBefore } from './keys-shown.ts'

const minuteMs = 60_000
const dayMs = 24 * 60 * minuteMs

let world: DomainWorld
let counter = 0

beforeAll(async () => {
  world = await createDomainWorld()
})
afterEach(async () => {
  await world.db.deleteFrom('domains').execute()
  await world.emitted()
})
afterAll(() => world.end())

const read = ({ id }: Pick<Domain, 'id'>) => world.domains.get(world.db, world.account, id)
const check = ({ id }: Pick<Domain, 'id'>) => world.domains.verify(world.db, live(world.account), id)
const rotate = ({ id }: Pick<Domain, 'id'>, keys = {}) =>
  world.domains.rotateKeys(world.db, live(world.account), id, keys)

async function addVerified(purposes?: Parameters<typeof publish>[2]): Promise<Domain> {
  const domain = await world.domains.create(world.db, live(world.account), { name: `shop-${++counter}.example` })
  publish(world.dns, domain, purposes)
  const verified = await check(domain)
  expect(verified.status).toBe('verified')
  await world.emitted()
  return verified
}

/** Publishes the records of the keys that are to sign next, all or those of some purposes. */
function publishNext(domain: Domain, purposes?: Parameters<typeof publish>[2]): void {
  publish(world.dns, { records: keyRecordsOf(domain, 'next') }, purposes)
}

describe('rotating the keys of a domain', () => {
  test('rotating the keys of a domain shows new records beside the present ones, and leaves the present keys signing', async () => {
    const before = await addVerified()
    const rotated = await rotate(before)

    expect(keyRecordsOf(rotated, 'signing')).toEqual(keyRecordsOf(before, 'signing'))
    expect(keyRecordsOf(rotated, 'next').map(({ purpose, required, status }) => [purpose, required, status])).toEqual([
      ['dkim_rsa', false, 'pending'],
      ['dkim_ed25519', false, 'pending'],
    ])
    expect(new Set([...keyNamesOf(before, 'signing'), ...keyNamesOf(rotated, 'next')]).size).toBe(4)
    expect(rotated).toMatchObject({ status: 'verified', retiredRecords: [] })
    expect(await read(before)).toEqual(rotated)
    const [signing] = await signingAsBefore(world, rotated)
    expect(`${signing?.selector}._domainkey.${before.name}`).toBe(keyNamesOf(before, 'signing')[0])
    expect(await world.emitted()).toEqual([])
  })

  test('rotating the keys of a domain has the new keys sign once a check by request has seen their records, and says how long to keep the old', async () => {
    const before = await addVerified()
    const rotated = await rotate(before)
    world.moveClock(1_000)
    const waiting = await check(before)
    expect(keyRecordsOf(waiting, 'next').map(({ status }) => status)).toEqual(['missing', 'missing'])
    expect(keyNamesOf(waiting, 'signing')).toEqual(keyNamesOf(before, 'signing'))

    publishNext(rotated)
    world.moveClock(1_000)
    const done = await check(before)
    expect(keyNamesOf(done, 'signing')).toEqual(keyNamesOf(rotated, 'next'))
    expect(keyRecordsOf(done, 'signing').map(({ status, required }) => [status, required])).toEqual([
      ['verified', true],
      ['verified', false],
    ])
    expect(keyRecordsOf(done, 'next')).toEqual([])
    expect(await signingAsBefore(world, done)).toEqual(
      keyNamesOf(rotated, 'next').map((name) => ({ selector: name.split('.')[0], isPublished: true })),
    )
    const retiredAt = world.clock.now()
    expect(done.retiredRecords).toEqual(
      keyRecordsOf(before, 'signing').map(({ purpose, type, name, value }) => ({
        ...{ purpose, type, name, value },
        retiredAt: retiredAt.toISOString(),
        removableAt: new Date(retiredAt.getTime() + 7 * dayMs).toISOString(),
      })),
    )
    expect(done).toMatchObject({ status: 'verified', verifiedAt: before.verifiedAt })
    expect(await world.emitted()).toEqual([])
    // The records of the old keys are not looked for any more.
    withdraw(world.dns, { records: keyRecordsOf(before, 'signing') })
    expect((await check(before)).status).toBe('verified')
  })

  test('rotating the keys of a domain has the schedule see the new ones, with pauses that grow, and leaves the checks of the domain as they are', async () => {
    const before = await addVerified()
    const rotated = await rotate(before)
    const looks: number[] = []
    for (let minute = 1; minute <= 80; minute++) {
      world.moveClock(minuteMs)
      if ((await world.runDueChecks()) > 0) looks.push(minute)
    }
    expect(looks).toEqual([1, 2, 4, 8, 16, 32, 64])
    expect(await read(before)).toMatchObject({ status: 'verified', nextCheckAt: before.nextCheckAt })

    publishNext(rotated)
    world.moveClock(48 * minuteMs)
    expect(await world.runDueChecks()).toBe(1)
    const done = await read(before)
    expect(keyNamesOf(done, 'signing')).toEqual(keyNamesOf(rotated, 'next'))
    expect(keyRecordsOf(done, 'signing').map(({ status }) => status)).toEqual(['verified', 'verified'])
    expect(await world.runDueChecks()).toBe(0)
  })

  test('rotating the keys of a domain does not fail a domain by the checks it adds, and waits on with the daily ones after 72 hours', async () => {
    const before = await addVerified()
    const rotated = await rotate(before)
    for (let hour = 1; hour <= 80; hour++) {
      world.moveClock(60 * minuteMs)
      await world.runDueChecks()
    }
    expect(await read(before)).toMatchObject({ status: 'verified' })
    const { next_check_at } = await world.db
      .selectFrom('domain_keys')
      .select('next_check_at')
      .where('domain_id', '=', before.id)
      .executeTakeFirstOrThrow()
    expect(next_check_at).toBeNull()
    publishNext(rotated)
    world.moveClock(dayMs)
    expect(await world.runDueChecks()).toBe(1)
    expect(keyNamesOf(await read(before), 'signing')).toEqual(keyNamesOf(rotated, 'next'))
  })

  test('rotating the keys of a domain waits for Ed25519 where that of the present keys is published, and does without it where it is not', async () => {
    const both = await addVerified()
    const first = await rotate(both)
    publishNext(first, ['dkim_rsa'])
    const waiting = await check(both)
    expect(keyRecordsOf(waiting, 'next').map(({ status }) => status)).toEqual(['verified', 'missing'])
    publishNext(first)
    expect(keyNamesOf(await check(both), 'signing')).toEqual(keyNamesOf(first, 'next'))

    const rsaAlone = await addVerified(['dkim_rsa', 'spf', 'return_path'])
    const second = await rotate(rsaAlone)
    publishNext(second, ['dkim_ed25519'])
    expect(keyRecordsOf(await check(rsaAlone), 'next')).toHaveLength(2)
    publishNext(second, ['dkim_rsa'])
    expect(keyNamesOf(await check(rsaAlone), 'signing')).toEqual(keyNamesOf(second, 'next'))
  })

  test('rotating a second time before the new keys are seen replaces those that wait, which then never sign', async () => {
    const before = await addVerified()
    const first = await rotate(before)
    const second = await rotate(before)
    expect(keyNamesOf(second, 'next')).not.toEqual(keyNamesOf(first, 'next'))
    publishNext(first)
    expect(keyNamesOf(await check(before), 'signing')).toEqual(keyNamesOf(before, 'signing'))
    publishNext(second)
    const done = await check(before)
    expect(keyNamesOf(done, 'signing')).toEqual(keyNamesOf(second, 'next'))
    expect(done.retiredRecords.map(({ name }) => name)).toEqual(keyNamesOf(before, 'signing'))
  })

  test('rotating again after the new keys sign retires them, newest first, and remembers ten', async () => {
    let domain = await addVerified()
    const used: string[][] = []
    for (let round = 0; round < 12; round++) {
      used.unshift(keyNamesOf(domain, 'signing'))
      publishNext(await rotate(domain))
      domain = await check(domain)
    }
    expect(domain.retiredRecords.map(({ name }) => name)).toEqual(used.slice(0, 10).flat())
    const { rows } = await sql<{ count: string }>`
      SELECT count(*) FROM domain_keys
      WHERE domain_id = ${domain.id} AND rsa_private_key IS NULL AND ed25519_private_key IS NULL
    `.execute(world.db)
    expect(Number(rows[0]?.count)).toBe(10)
  })

  test('rotating the keys of a domain by several at once leaves one pair of new keys, which signs', async () => {
    const before = await addVerified()
    const rotated = await Promise.all(Array.from({ length: 4 }, () => rotate(before)))
    const waiting = await read(before)
    expect(keyRecordsOf(waiting, 'next')).toHaveLength(2)
    expect(rotated.map((one) => keyNamesOf(one, 'next'))).toContainEqual(keyNamesOf(waiting, 'next'))
    publishNext(waiting)
    const checked = await Promise.all(Array.from({ length: 4 }, () => check(before)))
    for (const domain of checked) expect(keyNamesOf(domain, 'signing')).toEqual(keyNamesOf(waiting, 'next'))
    expect((await read(before)).retiredRecords).toHaveLength(2)
  })

  test('rotating keys while a check is under way makes what it found of other keys not count', async () => {
    const before = await addVerified()
    const first = await rotate(before)
    publishNext(first)
    const { checking, second } = await inTransaction(world.db, async (trx) => {
      const second = await world.domains.rotateKeys(trx, live(world.account), before.id, {})
      const checking = check(before)
      await untilSomebodyWaits(world.db)
      return { checking, second }
    })
    const checked = await checking
    expect(keyNamesOf(checked, 'signing')).toEqual(keyNamesOf(before, 'signing'))
    expect(keyNamesOf(checked, 'next')).toEqual(keyNamesOf(second, 'next'))
    expect(keyRecordsOf(checked, 'next').map(({ status }) => status)).toEqual(['pending', 'pending'])
  })

  test('rotating the keys of a domain with name servers that fail changes nothing', async () => {
    const before = await addVerified()
    const rotated = await rotate(before)
    for (const { name } of keyRecordsOf(rotated, 'next')) world.dns.set(name, 'failure')
    const checked = await check(before)
    expect(keyRecordsOf(checked, 'next').map(({ status }) => status)).toEqual(['server_failure', 'server_failure'])
    expect(keyNamesOf(checked, 'signing')).toEqual(keyNamesOf(before, 'signing'))
  })

  test('rotating the keys of a domain before the domain was ever verified retires nothing, since nothing was signed', async () => {
    const domain = await world.domains.create(world.db, live(world.account), { name: `shop-${++counter}.example` })
    await world.emitted()
    const rotated = await rotate(domain)
    publish(world.dns, rotated)
    withdraw(world.dns, { records: keyRecordsOf(domain, 'signing') })
    const done = await check(domain)
    expect(done).toMatchObject({ status: 'verified', retiredRecords: [] })
    expect(keyNamesOf(done, 'signing')).toEqual(keyNamesOf(rotated, 'next'))
    expect(await world.emitted()).toEqual([['domain.verified', { domainId: domain.id, domain: domain.name }]])
  })

  test('rotating the keys of a domain that lost its present record lets it go on: the new one counts in the same check', async () => {
    const before = await addVerified()
    const rotated = await rotate(before)
    withdraw(world.dns, { records: keyRecordsOf(before, 'signing') })
    publishNext(rotated)
    world.moveClock(dayMs)
    await world.runDueChecks()
    expect(await read(before)).toMatchObject({ status: 'verified' })
    expect(keyNamesOf(await read(before), 'signing')).toEqual(keyNamesOf(rotated, 'next'))
  })

  test('rotating the keys of a domain is for the account alone, and deleting the domain takes all of its keys away', async () => {
    const domain = await addVerified()
    publishNext(await rotate(domain))
    await check(domain)
    await rotate(domain)
    expect(await refusal(world.domains.rotateKeys(world.db, live(world.stranger), domain.id, {}))).toBe('not_found')
    await world.domains.delete(world.db, live(world.account), domain.id)
    expect(await world.db.selectFrom('domain_keys').selectAll().execute()).toEqual([])
    expect(await refusal(rotate(domain))).toBe('not_found')
  })

  test('a rotation is shown in lists, at the domain it is of', async () => {
    const [one, other] = [await addVerified(), await addVerified()]
    await rotate(one)
    const { data } = await world.domains.list(world.db, world.account, { limit: 10 })
    expect(data.map(({ id, records }) => [id, records.length])).toEqual([
      [other.id, 5],
      [one.id, 7],
    ])
  })
})

describe('under capture', () => {
  test('the new keys of a name below .test sign at once', async () => {
    const captured = await createDomainWorld({ isCaptured: true })
    onTestFinished(() => captured.end())
    const { db, account, domains } = captured
    const domain = await domains.create(db, live(account), { name: 'shop.test' })
    await captured.emitted()
    const rotated = await domains.rotateKeys(db, live(account), domain.id, {})
    expect(keyRecordsOf(rotated, 'next')).toEqual([])
    expect(keyNamesOf(rotated, 'signing')).not.toEqual(keyNamesOf(domain, 'signing'))
    expect(keyRecordsOf(rotated, 'signing').map(({ status }) => status)).toEqual(['verified', 'verified'])
    expect(rotated.retiredRecords.map(({ name }) => name)).toEqual(keyNamesOf(domain, 'signing'))
    expect(await domains.get(db, account, domain.id)).toEqual(rotated)
    expect(await captured.emitted()).toEqual([])
  })
})
