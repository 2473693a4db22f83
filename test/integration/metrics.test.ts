import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { contract } from '../../contract/index.ts'
import { answer, type Receiver, startReceiver } from '../support/receiver.ts'
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

describe('/metrics', () => {
  it('tells of requests, of attempts by outcome and of their duration', async () => {
    await service.client.succeed(contract.webhooks.create, {
      body: { url: receiver.url, events: ['subscriber.added'] },
    })
    await service.client.succeed(contract.subscribers.create, { body: { email: 'ada@example.com' } })
    await expect.poll(() => metric('postern_delivery_attempts_total{outcome="succeeded"}')).toBe(1)
    expect(await metric('postern_delivery_attempt_duration_seconds_count')).toBe(1)
    const requests = 'postern_http_requests_total{method="POST",route="/v1/webhooks",status="201"}'
    expect(await metric(requests)).toBe(1)
    expect(await metric('postern_outbox_events')).toBe(0)
    expect(await metric('postern_oldest_undelivered_event_age_seconds')).toBe(0)
  })

  it('tells how old the oldest event is that waits for a retry', async () => {
    receiver.respond(answer(500))
    await service.client.succeed(contract.subscribers.create, { body: { email: 'grace@example.com' } })
    await expect.poll(() => metric('postern_delivery_attempts_total{outcome="retry"}')).toBe(1)
    await expect.poll(() => metric('postern_oldest_undelivered_event_age_seconds')).toBeGreaterThan(0)
  })
})

describe('/metrics while the database cannot be asked', () => {
  it('still tells of the process', async () => {
    await using cut = await startTestService({ expectErrors: true })
    await cut.database.db.schema.alterTable('outbox_rows').renameTo('elsewhere').execute()
    const answered = await fetch(`${cut.url}/metrics`)
    const text = await answered.text()
    expect(answered.status).toBe(200)
    expect(text).toMatch(/^postern_outbox_events nan$/im)
    expect(text).toContain('process_cpu_seconds_total')
  })
})
