import { setTimeout as delay } from 'node:timers/promises'
import type { BenchmarkContext, Measurement, Target } from '../benchmark.ts'
import { type Cluster, type Service, startService } from '../lab.ts'
import { addSender, addSendingDomain, batchSize, type MailSink, sendingRequest } from '../mail.ts'
import type { Tenant } from '../seed.ts'

/* Measures the memory of the service while messages wait because their mail server does not reply. */

const fewWaiting = 10_000
const manyWaiting = 100_000
/** Batches in flight. */
const connections = 4
/** Milliseconds to watch the memory once all messages wait. */
const watchMs = 5_000
const samplingMs = 100
const side = 'service, mail waiting'

export type Waiting = {
  measurements: readonly Measurement[]
  targets: readonly Target[]
  notes: readonly string[]
}

export type WaitingMeans = {
  cluster: Cluster
  sink: MailSink
  /** Settings of the service. */
  env: Record<string, string>
}

/** Fills a service whose mail server does not reply, then lets it reply. */
export async function measureWaiting(
  { processes, seconds, size, progress }: BenchmarkContext,
  { cluster, sink, env }: WaitingMeans,
): Promise<Waiting> {
  await using world = await cluster.create('waiting')
  const tenant = await addSender(world)
  await using service = await startService(processes, world, { name: side, env })
  await addSendingDomain(world, service, tenant)
  const fewBatches = Math.ceil((fewWaiting * size) / batchSize)
  const manyBatches = Math.ceil((manyWaiting * size) / batchSize)

  progress('warming up')
  await sink.reset()
  await fill(service, tenant, fewBatches)
  await sink.until(fewBatches * batchSize)
  await sink.reset()
  await sink.hold()

  /** Returns the peak memory while batches arrive, and for `watchMs` after. */
  function peakOf(batches: number): Promise<number> {
    progress(`${(batches * batchSize).toLocaleString('en')} come in`)
    return peakDuring(service, async () => {
      await fill(service, tenant, batches)
      await delay(watchMs)
    })
  }
  const few = await peakOf(fewBatches)
  const many = await peakOf(manyBatches - fewBatches)
  await sink.release()
  const working = await peakDuring(service, () => delay(seconds * 1000))
  const rate = (await sink.count()) / seconds
  progress(`${[few, many, working].map((bytes) => Math.round(bytes / 2 ** 20)).join(', ')} MiB`)

  const memory = (figure: string, bytes: number) => ({ side, figure, unit: 'MiB', values: [bytes / 2 ** 20] })
  return {
    measurements: [
      memory('memory until 10,000 wait', few),
      memory('memory until 100,000 wait', many),
      memory('memory as they are sent', working),
      { side, figure: 'sent then', unit: '/s', values: [rate] },
    ],
    targets: [{ figure: 'memory, 100,000 waiting to 10,000', value: many / few, goal: { atMost: 1.2 } }],
    notes: [
      'Messages come in by batches and wait for a mail server that takes connections and answers no message, then answers all. Before, the service has sent 10,000, so that it is warm.',
    ],
  }
}

async function peakDuring(service: Service, work: () => Promise<void>): Promise<number> {
  let isDone = false
  const working = work().finally(() => {
    isDone = true
  })
  let peak = 0
  while (!isDone) {
    peak = Math.max(peak, await service.memory())
    await Promise.race([working, delay(samplingMs)])
  }
  await working
  return peak
}

async function fill({ url }: Service, tenant: Tenant, batches: number): Promise<void> {
  const { method, path, headers, body } = sendingRequest(tenant, batchSize)
  let next = 0
  const loop = async () => {
    while (next < batches) {
      const mine = next++
      const answer = await fetch(url + path, { method, headers, body: body.replaceAll('{n}', String(mine)) })
      if (answer.status !== 202) throw new Error(`a batch was answered ${answer.status}: ${await answer.text()}`)
      await answer.arrayBuffer()
    }
  }
  await Promise.all(Array.from({ length: connections }, loop))
}
