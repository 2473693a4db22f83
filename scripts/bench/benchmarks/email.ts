import { z } from 'zod'
import type { Benchmark, BenchmarkContext, Outcome } from '../benchmark.ts'
import { startCluster, startLoad, startService } from '../lab.ts'
import {
  addSender,
  addSendingDomain,
  assertTaken,
  batchSize,
  dkimOfBaseline,
  type MailSink,
  message,
  sendingRequest,
  startMailSink,
  untilSent,
} from '../mail.ts'
import { profiling } from '../profile.ts'
import { formatNumber } from '../report.ts'
import { costsOf, inTurn, valuesOf } from '../rounds.ts'
import { settleDown } from '../seed.ts'
import { median, quantile, ratio } from '../statistics.ts'
import { measureWaiting } from './email-waiting.ts'

/** Requests with one email in flight. */
const connections = 32
/** Requests with a batch in flight. */
const batchConnections = 4
/** Connections to the mail server on each side. */
const mailConnections = 20
/** Approximate messages per second of the baseline, which determine the messages of its round. */
const expectedBareRate = 400

export const email: Benchmark = {
  name: 'email',
  measures: 'POST /v1/emails with a live key, 10 KB each → signed and taken by a mail server, all in one process',
  baseline: 'bare nodemailer with its pool and its DKIM, the same messages to the same mail server',
  rounds: 5,
  seconds: 10,
  run,
}

type Measured = { count: number; rate: number; p99: number }

async function run(context: BenchmarkContext): Promise<Outcome> {
  const { processes, seconds, progress } = context
  const profile = profiling(context, 'email')
  const cluster = await startCluster(processes, profile.cluster)
  const sink = await startMailSink(processes)
  await using world = await cluster.create('email')
  const tenant = await addSender(world)
  const env = mailSettings(sink)
  const service = await startService(processes, world, { nodeArgs: profile.nodeArgs, env })
  await addSendingDomain(world, service, tenant)
  const load = await startLoad(processes)
  const bare = await processes.start({ name: 'nodemailer', file: import.meta.resolve('../programs/bare-mail.ts') })
  const dkim = dkimOfBaseline()

  /** Sends requests of `emails` emails for `forSeconds`. Waits until the mail server has all and that is recorded. */
  async function send(emails: number, forSeconds: number): Promise<Measured> {
    await sink.reset()
    const since = new Date()
    const began = performance.now()
    const { latencies } = await load.run(
      {
        origins: [service.url],
        requests: [sendingRequest(tenant, emails)],
        seconds: forSeconds,
        connections: emails === 1 ? connections : batchConnections,
      },
      202,
    )
    const count = latencies.length * emails
    await sink.until(count)
    await untilSent(world, since)
    const took = (performance.now() - began) / 1000
    await assertTaken(sink, count, ['rsa-sha256', 'ed25519-sha256'])
    return { count, rate: count / took, p99: quantile(latencies, 0.99) }
  }

  async function sendBare(count: number): Promise<Measured> {
    await sink.reset()
    const request = { port: sink.port, connections: mailConnections, count, message, dkim }
    const { seconds: took } = await bare.ask('run', request, z.object({ seconds: z.number() }))
    await assertTaken(sink, count, ['rsa-sha256'])
    return { count, rate: count / took, p99: Number.NaN }
  }

  progress('warming up')
  const warmUpSeconds = Math.min(3, seconds)
  await send(1, warmUpSeconds)
  await send(batchSize, warmUpSeconds)
  await sendBare(expectedBareRate * warmUpSeconds)
  await profile.begin(world)
  const prepare = () => settleDown(world)
  const sides = await inTurn<'service' | 'service, batches' | 'nodemailer', Measured>(
    context,
    {
      service: { prepare, measure: () => send(1, seconds) },
      'service, batches': { prepare, measure: () => send(batchSize, seconds) },
      nodemailer: { measure: () => sendBare(expectedBareRate * seconds) },
    },
    ({ rate }) => `${Math.round(rate)} messages/s`,
  )
  const { meanBytes } = await sink.messages()
  const measured = [sides.service, sides['service, batches']].flat()
  const count = Math.round(measured.reduce((sum, { value }) => sum + value.count, 0))
  const profiled = await profile.end(world, service, { what: 'message', count })
  await service.stop()
  const waiting = await measureWaiting(context, { cluster, sink, env })

  const subject = valuesOf(sides.service, ({ rate }) => rate)
  const batches = valuesOf(sides['service, batches'], ({ rate }) => rate)
  const baseline = valuesOf(sides.nodemailer, ({ rate }) => rate)
  return {
    measurements: [
      { side: 'service', figure: 'sent', unit: '/s', values: subject },
      { side: 'service', figure: 'p99 of the API', unit: 'ms', values: valuesOf(sides.service, ({ p99 }) => p99) },
      { side: 'service, batches', figure: 'sent', unit: '/s', values: batches },
      { side: 'nodemailer', figure: 'sent', unit: '/s', values: baseline },
      ...waiting.measurements,
    ],
    targets: [
      { figure: 'service', unit: '/s', value: median(subject), goal: { atLeast: 500 } },
      { figure: 'service to nodemailer', value: ratio(subject, baseline), goal: { atLeast: 0.6 } },
      ...waiting.targets,
    ],
    costs: costsOf(sides),
    notes: [
      `A message has ${formatNumber(meanBytes)} bytes; the service signs it with RSA 2048 and Ed25519, nodemailer with RSA 2048 alone. ${mailConnections} connections to the mail server, which answers at once and keeps nothing; a service has 5 to one host unless MAIL_CONNECTIONS_PER_HOST says otherwise.`,
      `Requests have no Idempotency-Key and are of one account, so that those that come at once share transactions. From the first request until the server has taken the last message and that is written down, at ${connections} requests in flight, or ${batchConnections} with ${batchSize} emails each; nodemailer has its messages in memory and writes nothing down.`,
      ...waiting.notes,
      ...profiled,
    ],
  }
}

function mailSettings(sink: MailSink): Record<string, string> {
  return {
    MAIL_TRANSPORT: 'relay',
    SMTP_URL: `smtp://127.0.0.1:${sink.port}`,
    MAIL_CONNECTIONS_PER_HOST: String(mailConnections),
  }
}
