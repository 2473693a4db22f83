import { createPublicKey, type KeyObject, sign, verify } from 'node:crypto'
import type { Domain } from '../../contract/domains.ts'
import { openPrivateKey } from '../../server/secrets/private-keys.ts'
import type { DomainWorld } from '../support/worlds/domains.ts'

type Role = 'signing' | 'next'

/** The DKIM records of a domain, RSA first. */
export const keyRecordsOf = ({ records }: Domain, role: Role) => records.filter(({ key }) => key === role)
export const keyNamesOf = (domain: Domain, role: Role) => keyRecordsOf(domain, role).map(({ name }) => name)

/** Returns the selectors that an older process signs with, and whether its keys belong to the published records. */
export async function signingAsBefore(
  { db, box }: Pick<DomainWorld, 'db' | 'box'>,
  { id, records }: Domain,
): Promise<{ selector: string; isPublished: boolean }[]> {
  const row = await db
    .selectFrom('domains')
    .select(['name', 'rsa_selector', 'rsa_private_key', 'ed25519_selector', 'ed25519_private_key'])
    .where('id', '=', id)
    .executeTakeFirstOrThrow()
  const rsa = openPrivateKey(box, row.rsa_private_key)
  const ed25519 = openPrivateKey(box, row.ed25519_private_key)
  const valueAt = (selector: string) =>
    records.find(({ name }) => name === `${selector}._domainkey.${row.name}`)?.value.split('p=')[1] ?? ''
  return [
    { selector: row.rsa_selector, isPublished: isPair('sha256', rsa, rsaKey(valueAt(row.rsa_selector))) },
    { selector: row.ed25519_selector, isPublished: isPair(null, ed25519, edKey(valueAt(row.ed25519_selector))) },
  ]
}

function isPair(algorithm: string | null, privateKey: KeyObject, publicKey: KeyObject): boolean {
  const text = Buffer.from('signed')
  return verify(algorithm, text, publicKey, sign(algorithm, text, privateKey))
}

const rsaKey = (value: string) => createPublicKey({ key: Buffer.from(value, 'base64'), format: 'der', type: 'spki' })
const edKey = (value: string) =>
  createPublicKey({
    key: { kty: 'OKP', crv: 'Ed25519', x: Buffer.from(value, 'base64').toString('base64url') },
    format: 'jwk',
  })
