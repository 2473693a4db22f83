import type { CreateApiKey } from '../../contract/api-keys.ts'
import { type Grant, isGranted, permissionSets } from '../../contract/permissions.ts'
import type { ErrorDetail } from '../shared/errors.ts'
import { type AddressRange, isCovered, readRange, textOf } from './address-ranges.ts'

/** The limits of a key, in addition to its permissions. */
export type KeyLimits = {
  /** Null: never. */
  expiresAt: Date | null
  /** Empty: any address. */
  allowedAddresses: readonly string[]
}

/** The permissions and limits of a caller: the most that a key which it makes can have. */
export type KeyMaker = KeyLimits & { permissions: readonly string[] }

export type Wanted = Pick<CreateApiKey, 'permissions' | 'expiresAt' | 'allowedAddresses'>

export type HandedOn = { limits: KeyLimits; faults: readonly ErrorDetail[] }

/**
 * Decides the limits of a new key. Default of each: that of its maker. The faults say what the key must not
 * have: a permission that its maker lacks, a later expiry, an address that its maker may not use. So a stolen key makes
 * none that is worth more.
 */
export function handOn(maker: KeyMaker, { permissions, expiresAt, allowedAddresses }: Wanted, now: Date): HandedOn {
  const expiry = expiresAt === undefined ? maker.expiresAt : dateOf(expiresAt)
  const own = maker.allowedAddresses.map(readRange).filter((range) => typeof range !== 'string')
  const given = (allowedAddresses ?? maker.allowedAddresses).map(readRange)
  const ranges = given.filter((range) => typeof range !== 'string')
  return {
    limits: { expiresAt: expiry, allowedAddresses: [...new Set(ranges.map(textOf))] },
    faults: [
      ...permissions.flatMap((grant, index) => faultsOfGrant(maker, grant, `body.permissions[${index}]`)),
      ...faultsOfExpiry(maker, expiry, now),
      ...given.flatMap((range, index) => faultsOfRange(own, range, `body.allowedAddresses[${index}]`)),
      ...(own.length > 0 && given.length === 0
        ? [{ path: 'body.allowedAddresses', message: `must be within ${own.map(textOf).join(', ')}, as this key is` }]
        : []),
    ],
  }
}

function dateOf(time: string | null): Date | null {
  return time === null ? null : new Date(time)
}

function faultsOfGrant({ permissions: held }: KeyMaker, grant: Grant, path: string): ErrorDetail[] {
  const needed = isSet(grant) ? permissionSets[grant] : [grant]
  const missing = needed.filter((permission) => !isGranted(held, permission))
  if (missing.length === 0) return []
  const what = missing.map((permission) => `"${permission}"`).join(', ')
  return [{ path, message: `must not go beyond your own permissions, which lack ${what}` }]
}

function isSet(grant: Grant): grant is keyof typeof permissionSets {
  return Object.hasOwn(permissionSets, grant)
}

function faultsOfExpiry(maker: KeyMaker, expiry: Date | null, now: Date): ErrorDetail[] {
  const path = 'body.expiresAt'
  if (expiry !== null && expiry <= now) return [{ path, message: 'must lie ahead' }]
  if (maker.expiresAt === null || (expiry !== null && expiry <= maker.expiresAt)) return []
  return [
    { path, message: `must be ${maker.expiresAt.toISOString()} at the latest, when the key expires that makes it` },
  ]
}

function faultsOfRange(own: readonly AddressRange[], range: AddressRange | string, path: string): ErrorDetail[] {
  if (typeof range === 'string') return [{ path, message: range }]
  if (own.length === 0 || isCovered(own, range)) return []
  return [{ path, message: `must be within ${own.map(textOf).join(', ')}, as the key is that makes it` }]
}
