import type { ServerResponse } from 'node:http'
import { sql } from 'kysely'
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { connect } from '../../server/database/connection.ts'
import { nextSequence } from '../../server/lib/sequence.ts'
import { initialLimit } from '../../server/webhook-delivery/scheduling/flow-limit.ts'
import { createWebhookChanges } from '../../server/webhook-delivery/webhook-changes.ts'
import { createWebhookReads } from '../../server/webhook-delivery/webhook-reads.ts'
import { stopMonotonicClock } from '../support/clock.ts'
import { type Engine, hasEnded, hasSucceeded, startEngine } from '../support/engine.ts'
import { answer, type Receiver, startReceiver } from '../support/receiver.ts'
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts'

/* A webhook changes while a worker has its deliveries in hand. */

const [total, cap] = [40, initialLimit]

let engine: Engine
let proxy: TcpProxy
let old: Receiver
let moved: Receiver

beforeEach(async () => {
  engine = await startEngine({
    async wakeUpsThrough(direct) {
      const url = new URL(direct)
      proxy = await startTcpProxy({ host: url.hostname, port: Number(url.port) })
      url.host = `127.0.0.1:${proxy.port}`
      return url.href
    },
  })
  old = await startReceiver()
  moved = await startReceiver()
})
afterEach(async () => {
  await engine.stop()
  await proxy[Symbol.asyncDispose]()
  await old.stop()
  await moved.stop()
})

/** Returns the read of an attempt claimed now: version 1, that of a webhook that has never changed. */
const asMade = () => ({ version: 1, readAt: nextSequence() })

const isHearing = (id: string) => engine.webhookChanges.mayBegin(id, asMade(), false)

/**
 * Deliveries of a webhook in the hands of a worker, as many as may be in flight, which are answered when that is
 * called. They were claimed from the queue.
 */
async function claimedDeliveries(): Promise<{ id: string; release: () => void }> {
  const id = await engine.addWebhook(old.url)
  await expect.poll(() => isHearing(id)).toBe(true)
  const held: ServerResponse[] = []
  old.respond(({ response }) => held.push(response))
  await engine.workers.stop(1_000)
  await engine.emit(total)
  await engine.fanOut()
  stopMonotonicClock()
  await engine.startWorkers()
  await old.received(cap)
  return {
    id,
    release() {
      old.respond(answer(200))
      for (const response of held) response.end()
    },
  }
}

/** As a process of an older version does. */
const move = (id: string) => sql`UPDATE webhooks SET url = ${moved.url} WHERE id = ${id}`.execute(engine.db)

test('what was claimed before its webhook was moved by an older process goes to the new URL, once that was told', async () => {
  const { id, release } = await claimedDeliveries()
  const claimed = asMade()
  await move(id)
  await expect.poll(() => engine.webhookChanges.mayBegin(id, claimed, false)).toBe(false)
  release()
  await engine.deliveriesOf(id, total, hasSucceeded)
  expect([old.requests.length, moved.requests.length]).toEqual([cap, total - cap])
})

test('what was claimed before its webhook was disabled by an older process is canceled, also where that left it pending', async () => {
  const { id, release } = await claimedDeliveries()
  const claimed = asMade()
  await sql`UPDATE webhooks SET status = 'disabled', disabled_reason = 'manual' WHERE id = ${id}`.execute(engine.db)
  await expect.poll(() => engine.webhookChanges.mayBegin(id, claimed, false)).toBe(false)
  release()
  const rows = await engine.deliveriesOf(id, total, hasEnded)
  expect(rows.filter(({ status }) => status === 'canceled')).toHaveLength(total - cap)
  expect(old.requests).toHaveLength(cap)
})

test('what was claimed before its webhook was disabled and enabled again goes on', async () => {
  const { id, release } = await claimedDeliveries()
  const claimed = asMade()
  for (const [status, reason] of [
    ['disabled', 'manual'],
    ['enabled', null],
  ]) {
    await sql`UPDATE webhooks SET status = ${status}, disabled_reason = ${reason} WHERE id = ${id}`.execute(engine.db)
  }
  await expect.poll(() => engine.webhookChanges.mayBegin(id, claimed, false)).toBe(false)
  release()
  await engine.deliveriesOf(id, total, hasSucceeded)
  expect(old.requests).toHaveLength(total)
})

test('while nothing is heard webhooks are read anew before each attempt, and compared again afterwards', async () => {
  const { id, release } = await claimedDeliveries()
  await proxy.cut()
  await expect.poll(() => isHearing(id)).toBe(false)
  await move(id)
  release()
  await engine.deliveriesOf(id, total, hasSucceeded)
  expect([old.requests.length, moved.requests.length]).toEqual([cap, total - cap])
  await proxy.mend()
  await expect.poll(() => engine.webhookChanges.mayBegin(id, { ...asMade(), version: 2 }, false)).toBe(true)
})

describe('what is known of changes', () => {
  test('what is known of changes is not relied on when nothing has shown for 10 seconds that notifications come', () => {
    const changes = createWebhookChanges()
    const now = vi.spyOn(performance, 'now').mockReturnValue(50_000)
    onTestFinished(() => now.mockRestore())
    expect(changes.mayBegin('wh_1', asMade(), false)).toBe(false)
    changes.hear(50_000)
    const read = asMade()
    now.mockReturnValue(60_000)
    expect(changes.mayBegin('wh_1', read, false)).toBe(true)
    now.mockReturnValue(60_001)
    expect(changes.mayBegin('wh_1', read, false)).toBe(false)
    expect(changes.mayBegin('wh_1', read, true)).toBe(true)
    // The webhook may have changed after the earlier read.
    changes.hear(60_001)
    expect(changes.mayBegin('wh_1', read, false)).toBe(false)
    expect(changes.mayBegin('wh_1', asMade(), false)).toBe(true)
  })

  test('a change of this process holds also while nothing is heard', () => {
    const changes = createWebhookChanges()
    const read = asMade()
    changes.tell('wh_1', 2)
    expect(changes.mayBegin('wh_1', read, true)).toBe(false)
    expect(changes.mayBegin('wh_1', { ...read, version: 2 }, true)).toBe(true)
  })
})

/** Through a line to the database that can be cut. */
async function readThroughProxy(signal: AbortSignal) {
  const url = new URL(engine.connectionString)
  const line = await startTcpProxy({ host: url.hostname, port: Number(url.port) })
  url.host = `127.0.0.1:${line.port}`
  const db = connect({ connectionString: url.href, max: 1, onError: () => undefined })
  const failed = Promise.withResolvers<unknown>()
  return {
    line,
    failed: failed.promise,
    reads: createWebhookReads({ db, signal, intervalMs: 20, onError: failed.resolve }),
    async [Symbol.asyncDispose]() {
      await db.destroy()
      await line[Symbol.asyncDispose]()
    },
  }
}

test('webhooks that are read wait while the database is away', async () => {
  await using through = await readThroughProxy(new AbortController().signal)
  const { line, failed, reads } = through
  const id = await engine.addWebhook(old.url)
  await line.cut()
  const reading = Promise.all([reads.read(id), reads.read('wh_none')])
  await failed
  await move(id)
  await line.mend()
  expect(await reading).toMatchObject([{ url: moved.url, version: 2 }, null])
})

test('webhooks that are read are waited for no longer when the worker ends', async () => {
  const stopping = new AbortController()
  await using through = await readThroughProxy(stopping.signal)
  const { line, failed, reads } = through
  await line.cut()
  const reading = reads.read('wh_1')
  const refused = expect(reading).rejects.toThrow('This operation was aborted')
  await failed
  stopping.abort()
  await refused
  await expect(async () => reads.read('wh_1')).rejects.toThrow('This operation was aborted')
})
