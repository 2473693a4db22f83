import { describe, expect, test } from 'vitest'
import { handOn, type KeyMaker, type Wanted } from '../../server/api-keys/handing-on.ts'

const now = new Date('2026-01-01T00:00:00Z')
const full: KeyMaker = { permissions: ['full_access'], expiresAt: null, allowedAddresses: [] }

function faultsOf(maker: Partial<KeyMaker>, wanted: Partial<Wanted>): string[] {
  const { faults } = handOn({ ...full, ...maker }, { permissions: ['events:read'], ...wanted }, now)
  return faults.map(({ path, message }) => `${path} ${message}`)
}

describe('permissions', () => {
  test.each<[held: string[], wanted: Wanted['permissions']]>([
    [['full_access'], ['full_access', 'sending_access', 'webhooks:write', 'api_keys:write']],
    [['emails:send', 'emails:read'], ['sending_access']],
    [
      ['read_access', 'api_keys:write'],
      ['read_access', 'domains:read', 'api_keys:write'],
    ],
  ])('%j may be handed on as %j', (held, wanted) => {
    expect(faultsOf({ permissions: held }, { permissions: wanted })).toEqual([])
  })

  test.each<[held: string[], wanted: Wanted['permissions'], lacks: string]>([
    [['api_keys:write'], ['webhooks:write'], '"webhooks:write"'],
    [['api_keys:write', 'emails:send'], ['sending_access'], '"emails:read"'],
    [['read_access', 'api_keys:write'], ['full_access'], '"api_keys:read"'],
    // A grant of a later version grants nothing here.
    [['later:write', 'api_keys:write'], ['events:read'], '"events:read"'],
  ])('%j may not be handed on as %j', (held, wanted, lacks) => {
    const [fault] = faultsOf({ permissions: held }, { permissions: wanted })
    expect(fault).toContain('body.permissions[0]')
    expect(fault).toContain(lacks)
  })

  test('the fault names the one of several that goes too far', () => {
    const faults = faultsOf({ permissions: ['events:read'] }, { permissions: ['events:read', 'emails:send'] })
    expect(faults).toEqual(['body.permissions[1] must not go beyond your own permissions, which lack "emails:send"'])
  })
})

const expiresAt = new Date('2026-02-01T00:00:00Z')

test('the expiry must lie ahead', () => {
  expect(faultsOf({}, { expiresAt: '2026-01-01T00:00:00Z' })).toEqual(['body.expiresAt must lie ahead'])
  expect(faultsOf({}, { expiresAt: '2026-01-01T01:00:00.001+01:00' })).toEqual([])
})

test('the expiry of a key that expires is handed on, and is the latest there is', () => {
  expect(handOn({ ...full, expiresAt }, { permissions: [] }, now).limits.expiresAt).toEqual(expiresAt)
  expect(faultsOf({ expiresAt }, { expiresAt: '2026-02-01T00:00:00Z' })).toEqual([])
  for (const later of [null, '2026-02-01T00:00:00.001Z']) {
    expect(faultsOf({ expiresAt }, { expiresAt: later })).toEqual([
      'body.expiresAt must be 2026-02-01T00:00:00.000Z at the latest, when the key expires that makes it',
    ])
  }
})

const allowedAddresses = ['203.0.113.0/24', '2001:db8::/32']

test('the allowed addresses are kept in canonical form, each once', () => {
  const { limits } = handOn(full, { permissions: [], allowedAddresses: ['::ffff:10.0.0.1', '10.0.0.1/32'] }, now)
  expect(limits.allowedAddresses).toEqual(['10.0.0.1'])
})

test('the allowed addresses of a key that has such are handed on, and are the most there are', () => {
  const maker = { ...full, allowedAddresses }
  expect(handOn(maker, { permissions: [] }, now).limits.allowedAddresses).toEqual(allowedAddresses)
  expect(faultsOf(maker, { allowedAddresses: ['203.0.113.7', '2001:db8:1::/48'] })).toEqual([])
  expect(faultsOf(maker, { allowedAddresses: [] })).toEqual([expect.stringContaining('body.allowedAddresses must')])
  for (const wider of ['203.0.112.0/23', '0.0.0.0/0', '::/0', '198.51.100.1']) {
    expect(faultsOf(maker, { allowedAddresses: ['203.0.113.7', wider] })).toEqual([
      expect.stringContaining('body.allowedAddresses[1] must be within 203.0.113.0/24, 2001:db8::/32'),
    ])
  }
})

test('allowed addresses that are none are told with their place', () => {
  expect(faultsOf({}, { allowedAddresses: ['10.0.0.1', '10.0.0.300'] })).toEqual([
    expect.stringContaining('body.allowedAddresses[1] must be an IP address'),
  ])
})
