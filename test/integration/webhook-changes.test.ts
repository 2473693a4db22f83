import { createHmac } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { sql } from 'kysely'
import { Webhook } from 'standardwebhooks'
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { contract } from '../../contract/index.ts'
import { nextSequence } from '../../server/lib/sequence.ts'
import { initialLimit } from '../../server/webhook-delivery/scheduling/flow-limit.ts'
import { createWebhookChanges } from '../../server/webhook-delivery/webhook-changes.ts'
import { stopMonotonicClock } from '../support/clock.ts'
import { answer, type Received, type Receiver, startReceiver } from '../support/receiver.ts'
import { startTestService, type TestService } from '../support/service.ts'

/*
 * A webhook is changed through the API while its deliveries wait in a worker for a slow endpoint. All that were begun
 * have arrived by then, so what the endpoint gets after the answer was begun after it.
 */

/** Deliveries made, of which as many as the cap of a webhook are in flight when it is changed. */
const [total, cap] = [200, initialLimit]

let count = 0

/** A webhook whose deliveries wait, at an endpoint that answers nothing until it is told to. */
type Waiting = {
  id: string
  secret: string
  old: Receiver
  /** Answers what arrived, and from now on at once. */
  release(): void
  /** Resolves when so many of its deliveries are in each state. */
  ended(counts: Record<string, number>): Promise<void>
}

async function waitingDeliveries({ client, database }: TestService): Promise<Waiting> {
  const old = await startReceiver()
  onTestFinished(() => old.stop())
  const held: ServerResponse[] = []
  old.respond(({ response }) => held.push(response))
  // Else a line that waits for a second on a busy machine is handed back to the queue.
  stopMonotonicClock()
  const { id, secret } = await client.succeed(contract.webhooks.create, {
    body: { url: old.url, events: ['subscriber.added'] },
  })
  await Promise.all(
    Array.from({ length: total }, () => {
      count += 1
      return client.succeed(contract.subscribers.create, { body: { email: `p${count}@example.com` } })
    }),
  )
  const states = async () => {
    const { rows } = await sql<{ status: string; count: number }>`
      SELECT status, count(*)::int FROM deliveries WHERE webhook_id = ${id} GROUP BY status
    `.execute(database.db)
    return Object.fromEntries(rows.map((row) => [row.status, row.count]))
  }
  await expect.poll(states).toEqual({ pending: total })
  await old.received(cap)
  return {
    id,
    secret,
    old,
    release() {
      old.respond(answer(200))
      for (const response of held) response.end()
    },
    async ended(counts) {
      await expect.poll(states).toEqual(counts)
      // The events of other tests must not go to this webhook.
      await client.send('DELETE', `/v1/webhooks/${id}`)
    },
  }
}

/** Whether both kinds of signatures of a request verify with the secret, the standard one also with the one before. */
function isSigned({ headers, body }: Received, secret: string, previous: string): boolean {
  for (const one of [secret, previous]) new Webhook(one).verify(body.toString(), headers)
  return headers['x-service-signature'] === createHmac('sha256', secret).update(body).digest('hex')
}

/** Returns the version of a new webhook, as an attempt reads it before any change. */
const asMade = () => ({ version: 1, readAt: nextSequence() })

describe.each(['in the process that answers', 'in another process'])('from the answer on, %s', (where) => {
  const changes = createWebhookChanges()
  let api: TestService
  let working: TestService
  let known: ReturnType<typeof asMade>
  let waiting: Waiting

  beforeAll(async () => {
    const isOne = where === 'in the process that answers'
    api = await startTestService({ roles: { worker: isOne }, ...(isOne && { webhookChanges: changes }) })
    working = isOne ? api : await startTestService({ beside: api, webhookChanges: changes })
  })
  afterAll(async () => {
    await working.stop()
    await api.stop()
  })
  beforeEach(async () => {
    waiting = await waitingDeliveries(api)
    await expect.poll(() => changes.mayBegin(waiting.id, asMade(), false)).toBe(true)
    known = asMade()
  })

  /** In the process that answers it is told already. */
  async function told(): Promise<void> {
    if (working !== api) await expect.poll(() => changes.mayBegin(waiting.id, known, false)).toBe(false)
    expect(changes.mayBegin(waiting.id, known, false)).toBe(false)
  }

  test('a moved webhook gets nothing at its old URL', async () => {
    const { id, old, release, ended } = waiting
    await using moved = await startReceiver()
    await api.client.succeed(contract.webhooks.update, { params: { id }, body: { url: moved.url } })
    await told()
    release()
    await ended({ succeeded: total })
    expect([old.requests.length, moved.requests.length]).toEqual([cap, total - cap])
  })

  test('a webhook that is disabled gets nothing', async () => {
    const { id, old, release, ended } = waiting
    await api.client.succeed(contract.webhooks.update, { params: { id }, body: { status: 'disabled' } })
    await told()
    release()
    await ended({ succeeded: cap, canceled: total - cap })
    expect(old.requests).toHaveLength(cap)
  })

  test('a webhook that is disabled and enabled again gets nothing that was canceled', async () => {
    const { id, old, release, ended } = waiting
    await api.client.succeed(contract.webhooks.update, { params: { id }, body: { status: 'disabled' } })
    await api.client.succeed(contract.webhooks.update, { params: { id }, body: { status: 'enabled' } })
    await told()
    release()
    await ended({ succeeded: cap, canceled: total - cap })
    expect(old.requests).toHaveLength(cap)
  })

  test('a webhook that is deleted gets nothing', async () => {
    const { id, old, release, ended } = waiting
    await api.client.succeed(contract.webhooks.delete, { params: { id } })
    await told()
    release()
    await ended({ succeeded: cap, canceled: total - cap })
    expect(old.requests).toHaveLength(cap)
  })

  test('a secret that was rotated signs, and the one before beside it', async () => {
    const { id, old, release, ended, secret } = waiting
    const rotated = await api.client.succeed(contract.webhooks.rotateSecret, { params: { id }, body: {} })
    await told()
    release()
    await ended({ succeeded: total })
    const after = old.requests.slice(cap)
    expect(after).toHaveLength(total - cap)
    expect(after.filter((request) => !isSigned(request, rotated.secret, secret))).toEqual([])
  })

  test('a test goes to the new URL', async () => {
    const { id, old, release, ended } = waiting
    await using moved = await startReceiver()
    await api.client.succeed(contract.webhooks.update, { params: { id }, body: { url: moved.url } })
    await api.client.succeed(contract.webhooks.test, { params: { id }, body: {} })
    expect(moved.requests.filter(({ headers }) => headers['x-service-sample'] === 'true')).toHaveLength(1)
    await told()
    release()
    await ended({ succeeded: total + 1 })
    expect(old.requests).toHaveLength(cap)
  })
})

test('a process whose connection for notifications was ended knows of what is changed then, and hears again', async () => {
  const changes = createWebhookChanges()
  await using api = await startTestService({ roles: { worker: false }, expectErrors: true })
  await using _working = await startTestService({ beside: api, webhookChanges: changes, expectErrors: true })
  const { id, old, release, ended } = await waitingDeliveries(api)
  await expect.poll(() => changes.mayBegin(id, asMade(), false)).toBe(true)
  const known = asMade()
  await sql`
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = 'postern wake-ups'
  `.execute(api.database.db)
  await using moved = await startReceiver()
  await api.client.succeed(contract.webhooks.update, { params: { id }, body: { url: moved.url } })
  // It does not hear, or heard of it, or hears again and reads anew what was read before.
  await expect.poll(() => changes.mayBegin(id, known, false)).toBe(false)
  release()
  await ended({ succeeded: total })
  expect([old.requests.length, moved.requests.length]).toEqual([cap, total - cap])
  await expect.poll(() => changes.mayBegin(id, { ...asMade(), version: 2 }, false)).toBe(true)
})
