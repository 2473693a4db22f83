import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { contract } from '../../contract/index.ts'
import { startService } from '../main/service-process.ts'
import { stopMonotonicClock } from '../support/clock.ts'
import { answer, type Receiver, startReceiver } from '../support/receiver.ts'
import { encryptionKey, startTestService, type TestService } from '../support/service.ts'
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts'

let proxy: TcpProxy
let proxied: URL
let service: TestService
let receiver: Receiver

beforeEach(async () => {
  receiver = await startReceiver()
  service = await startTestService({
    expectErrors: true,
    shutdownTimeoutSeconds: 1,
    // No test waits that long: what ends does not wait for endpoints.
    exchangeTimeoutMs: 3_600_000,
    async connectionString(direct) {
      proxied = new URL(direct)
      proxy = await startTcpProxy({ host: proxied.hostname, port: Number(proxied.port || 5432) })
      proxied.host = `127.0.0.1:${proxy.port}`
      return proxied.href
    },
  })
  await service.client.succeed(contract.webhooks.create, {
    body: { url: receiver.url, events: ['subscriber.added'] },
  })
})
afterEach(async () => {
  await service.stop()
  await proxy[Symbol.asyncDispose]()
  await receiver.stop()
})

/** How many requests the service makes to one webhook at once. */
const webhookCap = 16

/** Has so many deliveries made, of which as many as may be are in flight. Answers what ends these. */
async function deliver(count: number): Promise<() => void> {
  const held: (() => void)[] = []
  // Else a webhook that is held for seconds on a busy machine becomes slow, and has fewer requests in flight.
  const startClock = stopMonotonicClock()
  receiver.respond((exchange) => held.push(() => answer(200)(exchange)))
  for (let index = 0; index < count; index++) {
    await service.client.succeed(contract.subscribers.create, { body: { email: `p${index}@example.com` } })
  }
  await receiver.received(Math.min(count, webhookCap))
  startClock()
  return () => {
    for (const release of held) release()
  }
}

const statuses = async () =>
  (await service.database.db.selectFrom('deliveries').select('status').execute()).map(({ status }) => status)

describe('while the database is away', () => {
  it('what is in flight goes on, and is settled when it is back', async () => {
    const release = await deliver(3)
    await proxy.cut()
    release()
    await proxy.mend()
    await expect.poll(statuses).toEqual(['succeeded', 'succeeded', 'succeeded'])
    expect(receiver.requests).toHaveLength(3)
  })

  it('the service stops in time all the same, although endpoints hang, and leaves nothing open', async () => {
    await deliver(webhookCap + 2)
    await proxy.cut()
    await service.app.stop()
  })

  it('its process ends also when the database is there but does not answer', async () => {
    await using process = await startService({
      DATABASE_URL: proxied.href,
      ENCRYPTION_KEY: encryptionKey.toString('base64'),
      SHUTDOWN_TIMEOUT_SECONDS: '1',
    })
    proxy.stall()
    process.child.kill('SIGTERM')
    expect(await process.exit).toEqual({ code: 1, signal: null })
    expect(await process.stderr).toMatch(/^postern: the database does not answer; .*\n$/)
    await proxy.cut()
  })
})
