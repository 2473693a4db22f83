import { pino } from 'pino'
import { createExchange } from '../../server/delivery/exchange.ts'
import { createKeyring } from '../../server/delivery/keyring.ts'
import { type DeliveryWorker, startDeliveryWorker } from '../../server/delivery/worker.ts'
import { createTurns, type Turns } from '../../server/queue/turns.ts'
import type { Engine } from './engine.ts'

export type OwnWorkerOptions = {
  turns?: Turns
  /** Requests in flight at most. Default: 32. */
  concurrency?: number
  /** Requests in flight to one webhook at most. Default: 8. */
  webhookConcurrency?: number
}

/** A worker that delivers and fans nothing out, in place of the workers of an engine. */
export async function startOwnWorker(
  engine: Engine,
  { turns = createTurns(), concurrency = 32, webhookConcurrency = 8 }: OwnWorkerOptions = {},
): Promise<AsyncDisposable & DeliveryWorker> {
  await engine.workers.stop(1_000)
  const { clock } = engine
  const exchange = createExchange({ policy: { allowHttp: true, allowPrivateNetworks: true }, clock })
  const worker = startDeliveryWorker({
    ...engine,
    exchange,
    keyring: createKeyring(engine.secretBox),
    logger: pino({ level: 'fatal' }),
    concurrency,
    webhookConcurrency,
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
