import fc from 'fast-check'
import { fromString, fromUUID, toUUID } from 'typeid-js'
import { afterEach, expect, test, vi } from 'vitest'
import { idPattern, idPrefixes } from '../../contract/ids.ts'
import { continueAfter, firstIdAt, idOfUuid, newId, newRequestId, timeOf, uuidOf } from '../../server/shared/ids.ts'

afterEach(() => {
  vi.useRealTimers()
})

test('identifiers are TypeIDs of UUIDs of version 7, and grow also when the clock stands or is set back', () => {
  const times = [0, 0, 0, 5, 5, -3_600_000, 1].map((offset) => new Date(1_800_000_000_000 + offset))
  const ids = times.flatMap((at) => Array.from({ length: 3_000 }, () => newId('event', at)))
  expect(ids.toSorted()).toEqual(ids)
  expect(new Set(ids).size).toBe(ids.length)
  for (const id of ids.slice(0, 100)) {
    expect(id).toMatch(idPattern('event'))
    expect(uuidOf(id)).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  }
})

test('identifiers of requests are TypeIDs of UUIDs of version 7, unique and growing within a millisecond', () => {
  vi.useFakeTimers({ now: new Date('2026-03-01T09:00:00Z'), toFake: ['Date'] })
  const ids = Array.from({ length: 10_000 }, () => newRequestId())
  expect(ids.toSorted()).toEqual(ids)
  expect(new Set(ids).size).toBe(ids.length)
  for (const id of ids.slice(0, 100)) {
    expect(id).toMatch(idPattern('request'))
    expect(uuidOf(id)).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  }
  expect(timeOf(ids[0] as string)).toEqual(new Date())
})

test('identifiers of requests grow when the clock is set back a little, and follow it when it is set back far', () => {
  const start = new Date('2027-03-01T09:00:00Z')
  vi.useFakeTimers({ now: start, toFake: ['Date'] })
  const first = newRequestId()
  vi.setSystemTime(start.getTime() - 9_000)
  expect(newRequestId() > first).toBe(true)
  vi.setSystemTime(start.getTime() - 3_600_000)
  expect(timeOf(newRequestId())).toEqual(new Date())
})

test('identifiers lead to their UUID and back', () => {
  fc.assert(
    fc.property(fc.uuid(), fc.constantFrom('event' as const, 'delivery' as const), (uuid, kind) => {
      const id = idOfUuid(kind, uuid)
      expect(id.startsWith(`${idPrefixes[kind]}_`)).toBe(true)
      expect(uuidOf(id)).toBe(uuid)
    }),
  )
})

test('identifiers have the UUID in them that the reference implementation finds', () => {
  fc.assert(
    fc.property(fc.uuid(), (uuid) => {
      const id = idOfUuid('email', uuid)
      expect(uuidOf(id)).toBe(toUUID(fromString(id)))
      expect(id).toBe(fromUUID(uuid, 'email'))
    }),
  )
})

test.each([
  '018f0000-0000-7000-8000-00000000000',
  '018f0000-0000-7000-8000-0000000000000',
  '018f0000-0000-7000-8000-00000000000g',
  '',
])('there is no identifier of what is no UUID: %j', (uuid) => {
  expect(() => idOfUuid('email', uuid)).toThrow(/is no UUID/)
})

test.each([
  'evt_01jqz4x7m8e5v9t2k6r3w0y1a',
  'evt_01jqz4x7m8e5v9t2k6r3w0y1abc',
  'evt_81jqz4x7m8e5v9t2k6r3w0y1ab',
  'evt_01jqz4x7m8e5v9t2k6r3w0y1au',
  'evt_01JQZ4X7M8E5V9T2K6R3W0Y1AB',
  'evt_',
  '',
])('identifiers lead to none where there is none: %j', (id) => {
  expect(() => uuidOf(id)).toThrow(/is no identifier/)
})

test('identifiers go on from one that was given, however far ahead of the clock it is', () => {
  const ahead = newId('event', new Date(2_000_000_000_000)).replace(/.$/, 'z')
  continueAfter(ahead)
  const next = newId('event', new Date(1_800_000_000_000))
  expect(next > ahead).toBe(true)
  expect(timeOf(next).getTime() - timeOf(ahead).getTime()).toBe(1)
  continueAfter(firstIdAt('event', new Date(0)))
  expect(newId('event', new Date(0)) > next).toBe(true)
})

test('identifiers of a time stand at or above the first of that time, and below the first of a later one', () => {
  const at = new Date(2_100_000_000_000)
  const id = newId('event', at)
  expect(id >= firstIdAt('event', at)).toBe(true)
  expect(id < firstIdAt('event', new Date(at.getTime() + 1))).toBe(true)
})
