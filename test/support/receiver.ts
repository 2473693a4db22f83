import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import type { SecureContextOptions } from 'node:tls'
import { patienceMs } from './patience.ts'

/** A request as it arrived. */
export type Received = {
  method: string
  url: string
  headers: Record<string, string>
  /** The bytes of the body, as signed. */
  body: Buffer
}

/** Answers one request, in whatever way; may keep the line silent or cut it. */
export type Behaviour = (exchange: { request: Received; response: ServerResponse; socket: Socket }) => void

export type Receiver = AsyncDisposable & {
  url: string
  port: number
  requests: readonly Received[]
  /** How many connections were opened to it. */
  readonly connections: number
  /** How requests are answered from now on. Default: 200. */
  respond(behaviour: Behaviour): void
  /** How the next requests are answered, one each, before `respond` applies again. */
  respondOnce(...behaviours: Behaviour[]): void
  /** Resolves when `count` requests have arrived in all. Rejects after `patienceMs`. */
  received(count: number): Promise<readonly Received[]>
  /** Resolves when `count` connections have been closed in all. Rejects after `patienceMs`. */
  disconnected(count: number): Promise<void>
  stop(): Promise<void>
}

/** A plain answer. */
export function answer(
  status: number,
  { headers = {}, body = '' }: { headers?: Record<string, string>; body?: string | Buffer } = {},
): Behaviour {
  return ({ response }) => {
    response.writeHead(status, headers)
    response.end(body)
  }
}

/** No answer at all, until the receiver stops. */
export const silence: Behaviour = () => {}

/** A real endpoint on loopback that records what it gets. */
export async function startReceiver({ tls }: { tls?: SecureContextOptions } = {}): Promise<Receiver> {
  const requests: Received[] = []
  const once: Behaviour[] = []
  const waiting = new Set<() => void>()
  let behaviour: Behaviour = answer(200)
  let connections = 0
  let closed = 0

  function listener(incoming: IncomingMessage, response: ServerResponse): void {
    const chunks: Buffer[] = []
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
    incoming.on('error', () => {})
    incoming.on('end', () => {
      const request: Received = {
        method: incoming.method ?? '',
        url: incoming.url ?? '',
        headers: Object.fromEntries(Object.entries(incoming.headers).map(([name, value]) => [name, String(value)])),
        body: Buffer.concat(chunks),
      }
      requests.push(request)
      for (const check of waiting) check()
      ;(once.shift() ?? behaviour)({ request, response, socket: incoming.socket })
    })
  }

  function until(isReached: () => boolean, state: () => string): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        waiting.delete(check)
        reject(new Error(`${state()} in ${patienceMs / 1000} s`))
      }, patienceMs)
      function check(): void {
        if (!isReached()) return
        clearTimeout(timer)
        waiting.delete(check)
        resolve()
      }
      waiting.add(check)
      check()
    })
  }

  const server: Server = tls === undefined ? createServer(listener) : createTlsServer(tls, listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  server.on('connection', (socket: Socket) => {
    connections += 1
    socket.once('close', () => {
      closed += 1
      for (const check of waiting) check()
    })
  })
  const { port } = server.address() as AddressInfo

  async function stop(): Promise<void> {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }

  return {
    url: `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${port}/hooks`,
    port,
    requests,
    get connections() {
      return connections
    },
    respond(next) {
      behaviour = next
    },
    respondOnce(...next) {
      once.push(...next)
    },
    async received(count) {
      await until(
        () => requests.length >= count,
        () => `${requests.length} of ${count} requests arrived`,
      )
      return requests
    },
    disconnected: (count) =>
      until(
        () => closed >= count,
        () => `${closed} of ${count} connections were closed`,
      ),
    stop,
    [Symbol.asyncDispose]: stop,
  }
}
