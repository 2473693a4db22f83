import { expect, it } from 'vitest'
import { startEngine } from '../support/engine.ts'
import { startReceiver } from '../support/receiver.ts'

it.each([0, 5, 60])('outbox head of line, endpoint of %i ms', async (ms) => {
  await using engine = await startEngine({ places: 1024, endpointMax: 64 })
  await using flooded = await startReceiver()
  await using other = await startReceiver()
  flooded.respond(({ response }) => void setTimeout(() => response.end(), ms))
  await engine.addWebhook(flooded.url)
  const neighbour = await engine.addAccount()
  await engine.addWebhook(other.url, ['contact.deleted'], neighbour)
  await engine.emit(300)
  await flooded.received(300)
  const t0 = performance.now()
  await engine.emit(5_000)
  await engine.emit(1, 'contact.deleted', neighbour)
  const t1 = performance.now()
  await other.received(1)
  console.log(ms, 'emit ms', t1 - t0, 'waited', performance.now() - t1, 'flooded before', flooded.requests.length - 300)
  expect(1).toBe(1)
})
