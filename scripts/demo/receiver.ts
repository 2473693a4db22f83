import { createHmac, timingSafeEqual } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import { text } from 'node:stream/consumers'
import { DemoError } from './service.ts'

/** A request to the receiver. */
export type ReceivedDelivery = { headers: IncomingHttpHeaders; body: string; answered: number }

export type Receiver = AsyncDisposable & {
  url: string
  /** Sets the status of all later responses. */
  answerWith(status: number): void
  /** Returns the next delivery. Throws DemoError when none arrives within `timeoutMs`. */
  next(timeoutMs: number): Promise<ReceivedDelivery>
}

/** Starts the endpoint of a customer on a free port of this machine. */
export async function startReceiver(): Promise<Receiver> {
  let status = 200
  const arrived: ReceivedDelivery[] = []
  const server = createServer(async (request, response) => {
    // The raw text, because the signature covers the bytes.
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

/** Returns true when `X-Service-Signature` matches the body and the secret. Compares in constant time. */
export function isSignedBy(secret: string, { headers, body }: ReceivedDelivery): boolean {
  const given = Buffer.from(String(headers['x-service-signature'] ?? ''))
  const expected = Buffer.from(createHmac('sha256', secret).update(body).digest('hex'))
  return given.length === expected.length && timingSafeEqual(given, expected)
}
