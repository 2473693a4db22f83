import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { contract } from '../../contract/index.ts'
import { answer, type Receiver, silence, startReceiver } from '../support/receiver.ts'
import { startTestService, type TestService } from '../support/service.ts'

let service: TestService
let receiver: Receiver

beforeAll(async () => {
  service = await startTestService()
  receiver = await startReceiver()
})
afterAll(async () => {
  await service.stop()
  await receiver.stop()
})

/** The value of one series, or undefined while it is not there. */
async function metric(series: string): Promise<number | undefined> {
  const text = await (await fetch(`${service.url}/metrics`)).text()
  const line = text.split('\n').find((one) => one.startsWith(`${series} `))
  return line === undefined ? undefined : Number(line.slice(series.length + 1))
}

test('/metrics tells of requests, of attempts by outcome and of their duration', async () => {
  await service.client.succeed(contract.webhooks.create, {
    body: { url: receiver.url, events: ['subscriber.added'] },
  })
  await service.client.succeed(contract.subscribers.create, { body: { email: 'ada@example.com' } })
  await expect.poll(() => metric('postern_delivery_attempts_total{outcome="succeeded"}')).toBe(1)
  expect(await metric('postern_delivery_attempt_duration_seconds_count')).toBe(1)
  const requests = 'postern_http_requests_total{method="POST",route="/v1/webhooks",status="201"}'
  expect(await metric(requests)).toBe(1)
  // An attempt is counted before it is settled.
  await expect.poll(() => metric('postern_outbox_events')).toBe(0)
  await expect.poll(() => metric('postern_oldest_undelivered_event_age_seconds')).toBe(0)
})

test('/metrics tells how old the oldest event is that waits for a retry', async () => {
  receiver.respond(answer(500))
  await service.client.succeed(contract.subscribers.create, { body: { email: 'grace@example.com' } })
  await expect.poll(() => metric('postern_delivery_attempts_total{outcome="retry"}')).toBe(1)
  await expect.poll(() => metric('postern_oldest_undelivered_event_age_seconds')).toBeGreaterThan(0)
})

test('/metrics of what waits tells what URLs wait for, which answer nothing, and how many places are taken', async () => {
  await using hung = await startReceiver()
  hung.respond(silence)
  await service.client.succeed(contract.webhooks.create, { body: { url: hung.url, events: ['contact.created'] } })
  const waiting = (kind: string) => metric(`postern_delivery_flows_waiting{waiting_for="${kind}"}`)
  expect(await Promise.all(['endpoint_limit', 'account_share', 'claim'].map(waiting))).toEqual([0, 0, 0])
  expect(await metric('postern_delivery_flows_stalled')).toBe(0)
  expect(await metric('postern_delivery_places')).toBe(64)
  const { id: audienceId } = await service.client.succeed(contract.audiences.create, { body: { name: 'All' } })
  for (let index = 0; index < 12; index++) {
    const body = { email: `m${index}@example.com` }
    await service.client.succeed(contract.contacts.add, { params: { audienceId }, body })
  }
  await expect.poll(() => waiting('endpoint_limit')).toBe(1)
  expect(await metric('postern_delivery_places_taken')).toBeGreaterThanOrEqual(4)
  await expect.poll(() => metric('postern_delivery_flows_stalled')).toBe(1)
})

test('/metrics of what waits tells how long deliveries waited in the queue', async () => {
  const sum = 'postern_delivery_wait_seconds_sum'
  const before = (await metric(sum)) ?? 0
  const { db } = service.database
  // The retry of the test above is due now, and has been for a while.
  await sql`
      UPDATE deliveries SET next_attempt_at = now() - interval '100 seconds'
      WHERE status = 'pending' AND next_attempt_at > now()
    `.execute(db)
  await sql`
      UPDATE pgboss.job SET start_after = now() - interval '100 seconds', created_on = now() - interval '100 seconds'
      WHERE name = 'deliveries' AND state = 'created' AND start_after > now()
    `.execute(db)
  await expect.poll(async () => ((await metric(sum)) ?? 0) - before).toBeGreaterThanOrEqual(100)
})

test('/metrics of a process that delivers nothing tells nothing of places', async () => {
  await using api = await startTestService({ roles: { worker: false } })
  const text = await (await fetch(`${api.url}/metrics`)).text()
  expect(text).not.toContain('postern_delivery_places')
  expect(text).toContain('postern_queue_deliveries')
})

test('/metrics while the database cannot be asked still tells of the process', async () => {
  await using cut = await startTestService({ expectErrors: true })
  await cut.database.db.schema.alterTable('outbox_rows').renameTo('elsewhere').execute()
  const answered = await fetch(`${cut.url}/metrics`)
  const text = await answered.text()
  expect(answered.status).toBe(200)
  expect(text).toMatch(/^postern_outbox_events nan$/im)
  expect(text).toContain('process_cpu_seconds_total')
})
