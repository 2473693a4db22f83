import { pino } from 'pino'
import { createExchange } from '../../server/delivery/exchange.ts'
import { createKeyring } from '../../server/delivery/keyring.ts'
import { type DeliveryWorker, startDeliveryWorker } from '../../server/delivery/worker.ts'
import { createTurns, type Turns } from '../../server/queue/turns.ts'
import type { Engine } from './engine.ts'

/**
 * A worker that delivers and fans nothing out, in place of the workers of an engine: 32 requests in flight
 * at most, 8 to one webhook.
 */
export async function startOwnWorker(
  engine: Engine,
  { turns = createTurns() }: { turns?: Turns } = {},
): Promise<AsyncDisposable & DeliveryWorker> {
  await engine.workers.stop(1_000)
  const { clock } = engine
  const exchange = createExchange({ policy: { allowHttp: true, allowPrivateNetworks: true }, clock })
  const worker = startDeliveryWorker({
    ...engine,
    exchange,
    keyring: createKeyring(engine.secretBox),
    logger: pino({ level: 'fatal' }),
    concurrency: 32,
    webhookConcurrency: 8,
    pollIntervalMs: 50,
    turns,
  })
  return {
    ...worker,
    async [Symbol.asyncDispose]() {
      await worker.stop(0)
      await exchange.close()
    },
  }
}
