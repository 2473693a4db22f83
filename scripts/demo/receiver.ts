import { createHmac, timingSafeEqual } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import { text } from 'node:stream/consumers'
import { DemoError } from './service.ts'

/** One request as the receiver got it. */
export type ReceivedDelivery = { headers: IncomingHttpHeaders; body: string; answered: number }

export type Receiver = AsyncDisposable & {
  url: string
  /** The status it answers from now on. */
  answerWith(status: number): void
  /** The next delivery that arrives; throws DemoError when none does for `timeoutMs`. */
  next(timeoutMs: number): Promise<ReceivedDelivery>
}

/** A customer's endpoint, on a free port of this machine. */
export async function startReceiver(): Promise<Receiver> {
  let status = 200
  const arrived: ReceivedDelivery[] = []
  const server = createServer(async (request, response) => {
    // The raw text: a signature is of the bytes, not of what they mean.
    const body = await text(request)
    response.writeHead(status).end()
    arrived.push({ headers: request.headers, body, answered: status })
    server.emit('delivery')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the receiver has no port')

  const url = `http://127.0.0.1:${address.port}/hooks`

  return {
    url,
    answerWith(next) {
      status = next
    },
    async next(timeoutMs) {
      const signal = AbortSignal.timeout(timeoutMs)
      while (!signal.aborted) {
        const delivery = arrived.shift()
        if (delivery !== undefined) return delivery
        await once(server, 'delivery', { signal }).catch(() => undefined)
      }
      throw new DemoError(
        `no delivery arrived at ${url} within ${timeoutMs / 1000} s; the service must deliver (ROLES) and run on this machine`,
      )
    },
    async [Symbol.asyncDispose]() {
      server.close()
      server.closeAllConnections()
    },
  }
}

/** Whether `X-Service-Signature` is the one of this body and secret, compared in constant time. */
export function isSignedBy(secret: string, { headers, body }: ReceivedDelivery): boolean {
  const given = Buffer.from(String(headers['x-service-signature'] ?? ''))
  const expected = Buffer.from(createHmac('sha256', secret).update(body).digest('hex'))
  return given.length === expected.length && timingSafeEqual(given, expected)
}
