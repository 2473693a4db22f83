import { createHmac } from 'node:crypto'
import fc from 'fast-check'
import { Webhook } from 'standardwebhooks'
import { expect, test } from 'vitest'
import { signatureHeaders, signingKey } from '../../../server/webhook-delivery/attempt/signature.ts'

const secret = `whsec_${Buffer.alloc(32, 1).toString('base64')}`
const previousSecret = `whsec_${Buffer.alloc(32, 2).toString('base64')}`
const key = signingKey(secret)
const body = '{"id":"evt_1","type":"contact.created","data":{"email":"grüße@example.com"}}'

test('the signature headers are those of a calculation by hand', () => {
  const headers = signatureHeaders({
    eventId: 'evt_1',
    body,
    timestamp: new Date(1_772_357_400_999),
    key,
    previousKeys: [],
  })

  const signed = createHmac('sha256', Buffer.alloc(32, 1)).update(`evt_1.1772357400.${body}`).digest('base64')
  expect(headers).toEqual({
    'x-service-signature': createHmac('sha256', secret).update(body, 'utf8').digest('hex'),
    'webhook-id': 'evt_1',
    'webhook-timestamp': '1772357400',
    'webhook-signature': `v1,${signed}`,
  })
  expect(headers['x-service-signature']).toMatch(/^[0-9a-f]{64}$/)
})

test('the signature headers are accepted by a ready-made verifier, whatever the body', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      const anyBody = JSON.stringify({ text })
      const headers = signatureHeaders({
        eventId: 'evt_1',
        body: anyBody,
        timestamp: new Date(),
        key,
        previousKeys: [],
      })
      expect(new Webhook(secret).verify(anyBody, headers)).toEqual({ text })
    }),
  )
})

test('the signature headers are refused by a ready-made verifier for another body, another event, another time or another secret', () => {
  const now = new Date()
  const headers = signatureHeaders({ eventId: 'evt_1', body, timestamp: now, key, previousKeys: [] })
  const verifier = new Webhook(secret)
  expect(() => verifier.verify(`${body} `, headers)).toThrow()
  expect(() => verifier.verify(body, { ...headers, 'webhook-id': 'evt_2' })).toThrow()
  const later = String(Number(headers['webhook-timestamp']) + 1)
  expect(() => verifier.verify(body, { ...headers, 'webhook-timestamp': later })).toThrow()
  expect(() => new Webhook(previousSecret).verify(body, headers)).toThrow()
})

test('the signature headers satisfy receivers of the new and of the previous secret after a rotation', () => {
  const headers = signatureHeaders({
    eventId: 'evt_1',
    body,
    timestamp: new Date(),
    key,
    previousKeys: [signingKey(previousSecret)],
  })
  expect(new Webhook(secret).verify(body, headers)).toEqual(JSON.parse(body))
  expect(new Webhook(previousSecret).verify(body, headers)).toEqual(JSON.parse(body))
  expect(headers['webhook-signature']?.split(' ')).toHaveLength(2)
  expect(headers['x-service-signature']).toBe(createHmac('sha256', secret).update(body).digest('hex'))
})
