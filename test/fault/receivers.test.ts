import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { inTransaction } from '../../server/database/connection.ts'
import { createOutbox, type Outbox } from '../../server/outbox/append.ts'
import { newId } from '../../server/shared/ids.ts'
import { createExchange } from '../../server/webhook-delivery/attempt/exchange.ts'
import { type DnsServer, startDnsServer } from '../support/dns-server.ts'
import { type DeliveryState, type Engine, hasSucceeded, startEngine } from '../support/engine.ts'
import { answer, type Behaviour } from '../support/receiver.ts'
import { live } from '../support/scope.ts'
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts'
import { createTestTimer, type TestTimer } from '../support/timer.ts'
import { verdict } from './support/evidence.ts'
import { createLedger, type Ledger } from './support/ledger.ts'
import { type Recorder, startRecorder } from './support/recorder.ts'
import { rounds, within } from './support/rounds.ts'

/*
 * Endpoints in every bad way, side by side with one that is well, each failing some attempts of every
 * event. In the end all is delivered; meanwhile the one that is well waits for none of the others.
 */

let engine: Engine
let recorder: Recorder
let ledger: Ledger
let dns: DnsServer
let oldAddress: TcpProxy
let timer: TestTimer
let outbox: Outbox
let ids: Record<keyof typeof endpoints | 'moves', string>

/** Requests that are left without an answer, or with half of one. */
const hung = new Set<symbol>()
/** Functions that answer the open requests of the slow endpoint. */
const slow: (() => void)[] = []

const hang: Behaviour = ({ socket }) => {
  const request = Symbol()
  hung.add(request)
  socket.once('close', () => hung.delete(request))
}

const hangHalfWay: Behaviour = (exchange) => {
  exchange.response.writeHead(200, { 'content-length': '10' })
  exchange.response.write('half')
  hang(exchange)
}

const reset: Behaviour = ({ socket }) => socket.resetAndDestroy()
const resetHalfWay: Behaviour = ({ socket }) => void socket.write('HTTP/1.1 200 O', () => socket.resetAndDestroy())
const cutHalfWay: Behaviour = ({ response, socket }) => {
  response.writeHead(200, { 'content-length': '10' })
  response.write('half', () => socket.destroy())
}
const takeItsTime: Behaviour = (exchange) => void slow.push(() => answer(200)(exchange))

/** The behaviours of each endpoint for the first attempts of an event. Later attempts are answered 200. */
const endpoints = {
  steady: [],
  flaps: [answer(500), answer(404), answer(503, { headers: { 'retry-after': '7200' } })],
  hangs: [hang, hangHalfWay],
  resets: [reset, resetHalfWay, cutHalfWay],
  slow: [takeItsTime],
} satisfies Record<string, Behaviour[]>

const host = 'hook.test'
const oldHome = '127.0.0.2'
const newHome = '127.0.0.1'

beforeEach(async () => {
  timer = createTestTimer()
  ledger = createLedger()
  dns = await startDnsServer()
  recorder = await startRecorder()
  const port = Number(new URL(recorder.url).port)
  oldAddress = await startTcpProxy({ host: newHome, port }, { host: oldHome, port })
  dns.set(host, [oldHome])
  const exchange = createExchange({
    policy: { allowHttp: true, allowPrivateNetworks: true },
    clock: { now: () => engine.clock.now() },
    resolve: dns.resolve,
    startTimer: timer.startTimer,
  })
  engine = await startEngine({ exchange, places: 64, endpointMax: 16 })
  outbox = createOutbox({ clock: engine.clock, wake: () => engine.workers.wakeFanOut() })
  recorder.respond(behave())
  const webhook = (name: string, url = recorder.url) => engine.addWebhook(`${url}/${name}`, ['subscriber.added'])
  ids = {
    steady: await webhook('steady'),
    flaps: await webhook('flaps'),
    hangs: await webhook('hangs'),
    resets: await webhook('resets'),
    slow: await webhook('slow'),
    moves: await webhook('moves', recorder.url.replace(newHome, host)),
  }
})
afterEach(async () => {
  await engine.stop()
  await oldAddress[Symbol.asyncDispose]()
  await recorder[Symbol.asyncDispose]()
  await dns.stop()
})

/** Has each endpoint go through its bad ways with every event anew. */
function behave(): Behaviour {
  const attempts = new Map<string, number>()
  return (exchange) => {
    const { url, headers } = exchange.request
    const name = url.slice(url.lastIndexOf('/') + 1)
    const attempt = attempts.get(`${name} ${headers['webhook-id']}`) ?? 0
    attempts.set(`${name} ${headers['webhook-id']}`, attempt + 1)
    const ways: readonly Behaviour[] = name in endpoints ? endpoints[name as keyof typeof endpoints] : []
    ;(ways[attempt] ?? answer(200))(exchange)
  }
}

async function emit(count: number): Promise<void> {
  await inTransaction(engine.db, async (trx) => {
    for (let index = 0; index < count; index++) {
      const subscriberId = newId('subscriber', engine.clock.now())
      const email = `${subscriberId}@example.com`
      ledger.begin(email)
      await outbox.append(trx, live(engine.accountId), [
        { type: 'subscriber.added', data: { subscriberId, email, status: 'active' } },
      ])
      ledger.acknowledge(email)
    }
  })
}

const attempted = (times: number) => (row: DeliveryState) => hasSucceeded(row) || row.attempt_count >= times

/** Moves time until nothing is pending. A request is given up only when all that are left are hung. */
async function deliverTheRest(): Promise<void> {
  for (;;) {
    const pending = await engine.db.selectFrom('deliveries').select('id').where('status', '=', 'pending').execute()
    if (pending.length === 0) return
    for (const release of slow.splice(0)) release()
    if (timer.waiting > 0 && timer.waiting === hung.size) timer.advance(30_000)
    if (timer.waiting === 0) await engine.advance(3_600)
    // Requests that end now are settled within milliseconds. The loop reads the database until they are.
    await delay(10)
  }
}

const waves = rounds({ short: 2, long: 20 })
const perWave = 5

test(
  'endpoints that flap, hang, reset, are slow or move get everything, and hold up nobody',
  within(waves),
  async () => {
    for (let wave = 1; wave <= waves; wave++) {
      const soFar = wave * perWave
      await emit(perWave)
      await engine.deliveriesOf(ids.steady, soFar, hasSucceeded)
      await expect.poll(() => Math.min(hung.size, slow.length)).toBeGreaterThan(0)
      if (wave === 1) {
        await engine.deliveriesOf(ids.moves, soFar, hasSucceeded)
        await oldAddress.cut()
      }
      if (wave === 2) {
        await engine.deliveriesOf(ids.moves, soFar, attempted(1))
        dns.set(host, 'failure')
        await engine.advance(61)
        await engine.deliveriesOf(ids.moves, soFar, attempted(2))
        dns.set(host, [newHome])
      }
      await deliverTheRest()
    }
    expect(await verdict({ db: engine.db, ledger, recorder })).toEqual([])
    expect(recorder.arrivals.filter(({ path }) => path.endsWith('/steady'))).toHaveLength(waves * perWave)
    expect(recorder.arrivals.filter(({ path }) => path.endsWith('/resets'))).toHaveLength(4 * waves * perWave)
    expect(new Set(dns.queries.map(({ name }) => name))).toEqual(new Set([host]))
  },
)
