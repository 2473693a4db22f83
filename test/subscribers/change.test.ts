import { expect, test } from 'vitest'
import { addressKey } from '../../server/message/address.ts'
import { type SubscriberState, subscriberChange } from '../../server/subscribers/change.ts'

const ada: SubscriberState = { email: 'ada@example.com', firstName: 'Ada', lastName: null, status: 'active' }

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

test('an address in another letter case is another text and the same key', () => {
  expect(subscriberChange(ada, { email: 'Ada@Example.com' }).changed).toEqual(['email'])
  expect(addressKey('Ada@Example.com')).toBe(addressKey(ada.email))
})
