import { createPrivateKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { sql } from 'kysely'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import type { Domain } from '../../contract/domains.ts'
import { live } from '../support/scope.ts'
import { refusal } from '../support/worlds/audiences.ts'
import { createDomainWorld, type DomainWorld, publish } from '../support/worlds/domains.ts'
import { keyNamesOf, keyRecordsOf, signingAsBefore } from './keys-shown.ts'

const dayMs = 24 * 3_600_000

let world: DomainWorld
let counter = 0

beforeAll(async () => {
  world = await createDomainWorld()
})
afterEach(async () => {
  await world.db.deleteFrom('domains').execute()
})
afterAll(() => world.end())

const check = ({ id }: Domain) => world.domains.verify(world.db, live(world.account), id)

/** Rotates the keys and publishes the new ones. */
async function rotate({ id }: Domain, keys = {}): Promise<void> {
  const domain = await world.domains.rotateKeys(world.db, live(world.account), id, keys)
  publish(world.dns, { records: keyRecordsOf(domain, 'next') })
}

const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
const ed25519 = generateKeyPairSync('ed25519')
const pkcs8 = (key: KeyObject) => key.export({ format: 'pem', type: 'pkcs8' }).toString()
const pkcs1 = rsa.privateKey.export({ format: 'pem', type: 'pkcs1' }).toString()
const publicRsa = rsa.publicKey.export({ format: 'der', type: 'spki' }).toString('base64')
const publicEd25519 = ed25519.publicKey.export({ format: 'der', type: 'spki' }).subarray(12).toString('base64')
const keys = {
  rsa: { selector: 'S1', privateKey: pkcs1 },
  ed25519: { selector: 's2', privateKey: pkcs8(ed25519.privateKey) },
}
const create = (dkimKeys: object, name = `shop-${++counter}.example`) =>
  world.domains.create(world.db, live(world.account), { name, dkimKeys })

test('keys that are brought along sign with the records that are published already, and are not shown', async () => {
  const domain = await create(keys)
  expect(keyRecordsOf(domain, 'signing').map(({ name, value }) => [name, value])).toEqual([
    [`s1._domainkey.${domain.name}`, `v=DKIM1; k=rsa; p=${publicRsa}`],
    [`s2._domainkey.${domain.name}`, `v=DKIM1; k=ed25519; p=${publicEd25519}`],
  ])
  expect(await signingAsBefore(world, domain)).toEqual([
    { selector: 's1', isPublished: true },
    { selector: 's2', isPublished: true },
  ])
  publish(world.dns, domain)
  expect((await check(domain)).status).toBe('verified')
  expect(JSON.stringify(domain)).not.toContain('PRIVATE')
  const { rows } = await sql<{ text: string }>`SELECT domains::text AS text FROM domains`.execute(world.db)
  const secret = rsa.privateKey.export({ format: 'der', type: 'pkcs8' })
  expect(rows[0]?.text).not.toContain(secret.subarray(100, 120).toString('hex'))
})

test('keys that are brought along can be one of a kind: the other is made', async () => {
  const domain = await create({ rsa: keys.rsa })
  expect(keyNamesOf(domain, 'signing')).toEqual([
    `s1._domainkey.${domain.name}`,
    expect.stringMatching(/^ed25519-\w{10}\._domainkey\./),
  ])
  expect((await signingAsBefore(world, domain)).map(({ isPublished }) => isPublished)).toEqual([true, true])
  const other = await create({ ed25519: keys.ed25519 })
  expect(keyNamesOf(other, 'signing')).toEqual([
    expect.stringMatching(/^rsa-\w{10}\._domainkey\./),
    `s2._domainkey.${other.name}`,
  ])
})

test('keys that are brought along can be rotated to, and away from', async () => {
  const domain = await create({})
  publish(world.dns, domain)
  await check(domain)
  await rotate(domain, { dkimKeys: keys })
  expect(keyNamesOf(await check(domain), 'signing')).toEqual([
    `s1._domainkey.${domain.name}`,
    `s2._domainkey.${domain.name}`,
  ])
  await rotate(domain)
  expect((await check(domain)).retiredRecords.map(({ name }) => name.split('.')[0])).toEqual(
    expect.arrayContaining(['s1', 's2']),
  )
})

test('keys that are brought along need a selector that no other key of the domain has had in the last seven days', async () => {
  const domain = await create(keys)
  publish(world.dns, domain)
  await check(domain)
  const again = () => refusal(rotate(domain, { dkimKeys: keys }))
  expect(await again()).toBe('conflict')
  await rotate(domain)
  await check(domain)
  expect(await again()).toBe('conflict')
  world.moveClock(7 * dayMs)
  expect(await again()).toBe('not refused')
})

const small = generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey
const pss = generateKeyPairSync('rsa-pss', { modulusLength: 2048 }).privateKey
const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
const sealedPem = rsa.privateKey
  .export({ format: 'pem', type: 'pkcs8', cipher: 'aes-256-cbc', passphrase: 'x' })
  .toString()
test.each([
  ['no PEM', 'rsa', 'no key', /must be a private key in PEM/],
  ['a public key', 'rsa', rsa.publicKey.export({ format: 'pem', type: 'spki' }).toString(), /must be a private key/],
  ['a key with a passphrase', 'rsa', sealedPem, /without a passphrase/],
  ['an RSA key of 1,024 bits', 'rsa', pkcs8(small), /must have 2048 to 4096 bits, but has 1024/],
  ['a key for PSS', 'rsa', pkcs8(pss), /must be an RSA key/],
  ['a key of another kind', 'rsa', pkcs8(ed25519.privateKey), /must be an RSA key/],
  ['a key of another curve', 'ed25519', pkcs8(ec), /must be an Ed25519 key/],
  ['a key cut short', 'rsa', pkcs1.slice(0, 900), /must be a private key in PEM/],
  ['nothing but zeros', 'rsa', '\u0000'.repeat(8_192), /must be a private key in PEM/],
] as const)('keys that are brought along are refused: %s', async (_, kind, privateKey, message) => {
  const failure = await create({ [kind]: { selector: 's1', privateKey } }).catch((error: unknown) => error)
  expect(failure).toMatchObject({
    code: 'rule_violation',
    details: [{ path: `body.dkimKeys.${kind}.privateKey`, message: expect.stringMatching(message) }],
  })
  for (const part of privateKey.match(/[\w+/]{16,}/g) ?? []) expect(String(failure)).not.toContain(part)
})

test('keys that are brought along are refused where private and public part do not belong together', async () => {
  const other = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ format: 'jwk' })
  const mixed = createPrivateKey({
    key: { ...other, n: String(rsa.privateKey.export({ format: 'jwk' }).n) },
    format: 'jwk',
  })
  const privateKey = mixed.export({ format: 'pem', type: 'pkcs1' }).toString()
  await expect(create({ rsa: { selector: 's1', privateKey } })).rejects.toMatchObject({
    details: [{ message: expect.stringContaining('is damaged') }],
  })
})

test('keys that are brought along are refused at one selector for both, or at one that is too long for the domain', async () => {
  const same = { rsa: keys.rsa, ed25519: { ...keys.ed25519, selector: 's1' } }
  await expect(create(same)).rejects.toMatchObject({ details: [{ path: 'body.dkimKeys.ed25519.selector' }] })
  const name = `${'a.'.repeat(96)}example`
  await expect(create({ rsa: { ...keys.rsa, selector: 's'.repeat(43) } }, name)).rejects.toMatchObject({
    details: [{ path: 'body.dkimKeys.rsa.selector', message: 'must be at most 42 characters here' }],
  })
  const longest = await create({ rsa: { ...keys.rsa, selector: 's'.repeat(42) } }, name)
  expect(longest.records[0]?.name).toHaveLength(253)
})
