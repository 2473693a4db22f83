import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { z } from 'zod'
import { createEpochClock } from './epoch-clock.ts'
import { handler, serve } from './serve.ts'

/*
 * The endpoints of customers. The first part of a path, its kind, selects the response: `/ok/…` at once, `/after-20/…`
 * after 20 ms, `/after-20-failing-8/…` the same but every eighth request fails with 500 at once, `/status-500/…` with
 * that status, `/hang/…` never, `/down/…` closes the connection. The rest of the path distinguishes endpoints. `behave`
 * makes a path respond as another kind.
 */

type Keeping = 'nothing' | 'ids' | 'arrivals'

const epochNow = createEpochClock()
const answer = Buffer.from('ok')
let keeping: Keeping = 'nothing'
/** Requests by kind. */
let counts = new Map<string, number>()
let seen = new Map<string, number>()
let connections = 0
/** Paths that respond as another kind, with that kind. */
const changed = new Map<string, string>()
/** Requests so far to paths that fail some of them. */
const turns = new Map<string, number>()
let waiting: { kind: string; count: number; reached: () => void }[] = []

function note(request: IncomingMessage, kind: string): void {
  const count = (counts.get(kind) ?? 0) + 1
  counts.set(kind, count)
  for (const waiter of waiting) if (waiter.kind === kind && waiter.count === count) waiter.reached()
  if (keeping === 'nothing') return
  const id = String(request.headers['webhook-id'])
  if (keeping === 'arrivals') {
    if (!seen.has(id)) seen.set(id, epochNow())
    return
  }
  const key = `${request.url} ${id}`
  seen.set(key, (seen.get(key) ?? 0) + 1)
}

function respond(response: ServerResponse, status: number): void {
  response.writeHead(status, { 'content-length': answer.length })
  response.end(answer)
}

/** Counts a request to a path and returns true for each `every`-th one. */
function isFailing(path: string, every: number): boolean {
  const turn = (turns.get(path) ?? 0) + 1
  turns.set(path, turn)
  return turn % every === 0
}

function take(request: IncomingMessage, response: ServerResponse): void {
  const path = request.url ?? ''
  const kind = path.split('/', 2)[1] ?? ''
  note(request, kind)
  const [word, number, , every] = (changed.get(path) ?? kind).split('-')
  if (word === 'down') {
    request.socket.destroy()
    return
  }
  request.resume().once('end', () => {
    if (word === 'hang') return
    if (every !== undefined && isFailing(path, Number(every))) respond(response, 500)
    else if (word === 'after') void delay(Number(number)).then(() => respond(response, 200))
    else respond(response, word === 'status' ? Number(number) : 200)
  })
}

function createEndpoints(): Server {
  return createServer({ keepAliveTimeout: 60_000 }, take).on('connection', () => {
    connections += 1
  })
}

/** Serves the same endpoints on another loopback address, which counts as another host for limits. */
async function listenToo(address: string, port: number): Promise<void> {
  await once(createEndpoints().listen(port, address, 1_024), 'listening')
}

const server = createEndpoints()
server.listen(0, '127.0.0.1', 1_024, () => {
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the receiver has no port')
  serve({
    url: handler(z.null(), () => `http://127.0.0.1:${address.port}`),
    reset: handler(z.enum(['nothing', 'ids', 'arrivals']), (kept) => {
      keeping = kept
      counts = new Map()
      seen = new Map()
      waiting = []
      connections = 0
    }),
    listenToo: handler(z.string(), (other) => listenToo(other, address.port)),
    // Null: as its own kind again.
    behave: handler(z.object({ path: z.string(), as: z.string().nullable() }), ({ path, as }) => {
      if (as === null) changed.delete(path)
      else changed.set(path, as)
    }),
    // Opened since the reset.
    connections: handler(z.null(), () => connections),
    count: handler(z.string(), (kind) => counts.get(kind) ?? 0),
    until: handler(z.object({ kind: z.string(), count: z.int() }), async ({ kind, count }) => {
      if ((counts.get(kind) ?? 0) >= count) return
      await new Promise<void>((reached) => {
        waiting.push({ kind, count, reached })
      })
    }),
    // Event ids with the times of their first arrivals. Milliseconds since 1970.
    arrivals: handler(z.null(), () => [...seen]),
    duplicates: handler(z.null(), () => [...seen.values()].reduce((sum, times) => sum + times - 1, 0)),
  })
})
