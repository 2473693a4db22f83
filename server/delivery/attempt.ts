import type { Clock } from '../clock.ts'
import type { Exchange, ExchangeOutcome } from './exchange.ts'
import type { SigningKeys } from './keyring.ts'
import { signatureHeaders } from './signature.ts'

/** What one attempt sends, and where. */
export type AttemptTarget = SigningKeys & {
  eventId: string
  body: string
  url: string
}

/** Signs the body as stored and posts it. */
export async function attempt(
  { exchange, clock }: { exchange: Exchange; clock: Clock },
  target: AttemptTarget,
  signal?: AbortSignal,
): Promise<ExchangeOutcome> {
  const headers = {
    'content-type': 'application/json; charset=utf-8',
    'user-agent': 'Postern-Webhooks/1',
    ...signatureHeaders({
      eventId: target.eventId,
      body: target.body,
      timestamp: clock.now(),
      key: target.key,
      previousKey: target.previousKey,
    }),
  }
  return exchange.send({ url: target.url, headers, body: target.body }, signal)
}
