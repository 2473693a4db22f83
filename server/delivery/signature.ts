import { createHmac } from 'node:crypto'

export type SignatureInput = {
  eventId: string
  /** The body as it is sent, byte for byte. */
  body: string
  timestamp: Date
  /** `whsec_` and base64. */
  secret: string
  /** The secret before a recent rotation, whose receivers still accept it. */
  previousSecret?: string
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
  const { eventId, body, secret, previousSecret } = input
  const timestamp = String(Math.floor(input.timestamp.getTime() / 1000))
  const signed = `${eventId}.${timestamp}.${body}`
  const secrets = previousSecret === undefined ? [secret] : [secret, previousSecret]
  return {
    'x-service-signature': createHmac('sha256', secret).update(body).digest('hex'),
    'webhook-id': eventId,
    'webhook-timestamp': timestamp,
    'webhook-signature': secrets.map((key) => `v1,${standardSignature(key, signed)}`).join(' '),
  }
}

function standardSignature(secret: string, signed: string): string {
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64')
  return createHmac('sha256', key).update(signed).digest('base64')
}
