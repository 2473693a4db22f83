import { createHmac, createSecretKey, type KeyObject } from 'node:crypto'

/** A webhook's secret, ready to sign with. */
export type SigningKey = {
  /** The whole text of the secret. */
  text: KeyObject
  /** The bytes that stand behind `whsec_` in base64. */
  bytes: KeyObject
}

/** @param secret `whsec_` and base64. */
export function signingKey(secret: string): SigningKey {
  return {
    text: createSecretKey(secret, 'utf8'),
    bytes: createSecretKey(secret.slice('whsec_'.length), 'base64'),
  }
}

export type SignatureInput = {
  eventId: string
  /** The body as it is sent, byte for byte. */
  body: string
  timestamp: Date
  key: SigningKey
  /** Those of secrets that were rotated recently, which receivers may still verify with. */
  previousKeys: readonly SigningKey[]
}

/**
 * The headers a receiver verifies a delivery by, of both kinds:
 *
 * - `x-service-signature`: hexadecimal HMAC-SHA-256 of the body, keyed with the whole text of the
 *   secret (the spec, "Signature verification").
 * - `webhook-id`, `webhook-timestamp` (Unix seconds), `webhook-signature`: as ready-made verifiers
 *   expect them, keyed with the bytes behind `whsec_`; one signature for each valid secret.
 *   Source: Standard Webhooks 1.0.0.
 */
export function signatureHeaders(input: SignatureInput): Record<string, string> {
  const { eventId, body, key, previousKeys } = input
  const timestamp = String(Math.floor(input.timestamp.getTime() / 1000))
  const signed = `${eventId}.${timestamp}.${body}`
  return {
    'x-service-signature': createHmac('sha256', key.text).update(body).digest('hex'),
    'webhook-id': eventId,
    'webhook-timestamp': timestamp,
    'webhook-signature': [key, ...previousKeys]
      .map(({ bytes }) => `v1,${createHmac('sha256', bytes).update(signed).digest('base64')}`)
      .join(' '),
  }
}
