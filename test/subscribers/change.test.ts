import { expect, test } from 'vitest'
import { addressKey } from '../../server/message/address.ts'
import { type SubscriberState, subscriberChange } from '../../server/subscribers/change.ts'

const ada: SubscriberState = {
  email: 'ada@example.com',
  firstName: 'Ada',
  lastName: null,
  status: 'active',
  properties: {},
}

test('only what really differs counts as changed, in the order of the published schema', () => {
  expect(subscriberChange(ada, { status: 'unsubscribed', lastName: 'Lovelace', firstName: 'Ada' })).toEqual({
    after: { ...ada, lastName: 'Lovelace', status: 'unsubscribed' },
    changed: ['lastName', 'status'],
  })
})

test('null takes a name away, and leaving a field out keeps it', () => {
  expect(subscriberChange(ada, { firstName: null })).toEqual({
    after: { ...ada, firstName: null },
    changed: ['firstName'],
  })
  expect(subscriberChange(ada, { lastName: null, email: undefined })).toEqual({ after: ada, changed: [] })
})

test('properties have changed only when a value differs', () => {
  const paying = { ...ada, properties: { plan: 'pro', seats: 3 } }
  expect(subscriberChange(paying, { properties: { seats: 3, plan: 'pro' } }).changed).toEqual([])
  expect(subscriberChange(paying, { properties: { plan: 'pro', seats: 4 }, status: 'unsubscribed' }).changed).toEqual([
    'properties',
    'status',
  ])
  expect(subscriberChange(paying, { properties: { plan: 'pro' } }).changed).toEqual(['properties'])
  expect(subscriberChange(paying, { firstName: 'Eve' }).after.properties).toEqual(paying.properties)
})

test('an address in another letter case is another text and the same key', () => {
  expect(subscriberChange(ada, { email: 'Ada@Example.com' }).changed).toEqual(['email'])
  expect(addressKey('Ada@Example.com')).toBe(addressKey(ada.email))
})
