import type { Clock } from '../clock.ts'
import type { Exchange, ExchangeOutcome } from './exchange.ts'
import { signatureHeaders } from './signature.ts'
import type { SigningSecrets } from './signing-secrets.ts'

/** What one attempt sends, and where. */
export type AttemptTarget = SigningSecrets & {
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
      secret: target.secret,
      ...(target.previousSecret === null ? {} : { previousSecret: target.previousSecret }),
    }),
  }
  return exchange.send({ url: target.url, headers, body: target.body }, signal)
}
