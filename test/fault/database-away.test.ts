import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { contract } from '../../contract/index.ts'
import { initialLimit } from '../../server/webhook-delivery/scheduling/flow-limit.ts'
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
  await addWebhook('')
})
afterEach(async () => {
  await service.stop()
  await proxy[Symbol.asyncDispose]()
  await receiver.stop()
})

function addWebhook(path: string): Promise<unknown> {
  const body = { url: `${receiver.url}${path}`, events: ['subscriber.added' as const] }
  return service.client.succeed(contract.webhooks.create, { body })
}

/** Commits so many events. Returns once so many requests are in flight, with what answers all of them. */
async function deliver(events: number, inFlight: number): Promise<() => void> {
  const held: (() => void)[] = []
  // Else a flow that is held for seconds on a busy machine counts as hanging.
  const startClock = stopMonotonicClock()
  receiver.respond((exchange) => held.push(() => answer(200)(exchange)))
  for (let index = 0; index < events; index++) {
    await service.client.succeed(contract.subscribers.create, { body: { email: `p${index}@example.com` } })
  }
  await receiver.received(inFlight)
  startClock()
  return () => {
    for (const release of held) release()
  }
}

const statuses = async () =>
  (await service.database.db.selectFrom('deliveries').select('status').execute()).map(({ status }) => status)

describe('while the database is away', () => {
  test('what is in flight goes on while the database is away, and is settled when it is back', async () => {
    const release = await deliver(3, 3)
    await proxy.cut()
    release()
    await proxy.mend()
    await expect.poll(statuses).toEqual(['succeeded', 'succeeded', 'succeeded'])
    expect(receiver.requests).toHaveLength(3)
  })

  test('the service stops in time while the database is away and endpoints hang, and leaves nothing open', async () => {
    for (const path of ['/2', '/3', '/4']) await addWebhook(path)
    // Two for each URL wait in the queue.
    await deliver(initialLimit + 2, 4 * initialLimit)
    await proxy.cut()
    await service.app.stop()
  })

  test('the process ends though the database does not answer', async () => {
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
