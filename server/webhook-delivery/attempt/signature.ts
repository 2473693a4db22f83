import { createHmac, createSecretKey, type KeyObject } from 'node:crypto'

/** A webhook's secret, prepared for signing. */
export type SigningKey = {
  /** The whole secret as text. */
  text: KeyObject
  /** The bytes that follow `whsec_` in base64. */
  bytes: KeyObject
}

/**
 * Prepares a secret for signing.
 *
 * @param secret `whsec_` followed by base64.
 */
export function signingKey(secret: string): SigningKey {
  return {
    text: createSecretKey(secret, 'utf8'),
    bytes: createSecretKey(secret.slice('whsec_'.length), 'base64'),
  }
}

export type SignatureInput = {
  eventId: string
  /** The body exactly as it is sent. */
  body: string
  timestamp: Date
  key: SigningKey
  /** The keys of recently rotated secrets, which receivers may still use. */
  previousKeys: readonly SigningKey[]
}

/** Returns the value of `webhook-timestamp`: Unix seconds. */
export function secondsOf(timestamp: Date): string {
  return String(Math.floor(timestamp.getTime() / 1000))
}

/**
 * Returns the headers that receivers verify a delivery by, in two formats:
 *
 * - `x-service-signature`: hexadecimal HMAC-SHA-256 of the body, keyed with the whole text of the
 *   secret (the spec, "Signature verification").
 * - `webhook-id`, `webhook-timestamp` (Unix seconds), `webhook-signature`: the format of existing verification
 *   libraries, keyed with the bytes after `whsec_`; one signature for each valid secret.
 *   Source: Standard Webhooks 1.0.0.
 */
export function signatureHeaders(input: SignatureInput): Record<string, string> {
  const { eventId, body, key, previousKeys } = input
  const timestamp = secondsOf(input.timestamp)
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
