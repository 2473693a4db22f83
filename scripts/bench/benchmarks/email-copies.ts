import type { Benchmark, BenchmarkContext, Outcome } from '../benchmark.ts'
import { type Service, startCluster, startService, type World } from '../lab.ts'
import {
  addSender,
  addSendingDomain,
  assertTaken,
  batchSize,
  type MailSink,
  message,
  startMailSink,
  untilSent,
} from '../mail.ts'
import { formatNumber } from '../report.ts'
import { costsOf, inTurn, type Round, valuesOf } from '../rounds.ts'
import { settleDown, type Tenant } from '../seed.ts'
import { ratio } from '../statistics.ts'

/** Recipients of each email: the most that it can have. */
const recipients = 50
/** Approximate emails per second with a copy for each recipient. */
const expectedRate = 8

const sides = { each: 'a copy for each', shared: 'one copy for all' } as const

export const emailCopies: Benchmark = {
  name: 'email-copies',
  measures: `an email of 10 KB to ${recipients} recipients of one domain → signed and taken by a relay, with a copy for each recipient: INBOUND_SMTP_PORT is set`,
  baseline: 'the same without INBOUND_SMTP_PORT: one copy for all',
  rounds: 5,
  seconds: 5,
  run,
}

type Sender = { world: World; service: Service; tenant: Tenant }

async function run(context: BenchmarkContext): Promise<Outcome> {
  const { processes, seconds, progress } = context
  const cluster = await startCluster(processes)
  const sink = await startMailSink(processes)
  const emails = Math.min(Math.ceil(expectedRate * seconds), batchSize)

  async function startSender(name: string, database: string, env: Record<string, string>): Promise<Sender> {
    const world = await cluster.create(database)
    const tenant = await addSender(world)
    const smtp = { MAIL_TRANSPORT: 'relay', SMTP_URL: `smtp://127.0.0.1:${sink.port}` }
    const service = await startService(processes, world, { name, env: { ...smtp, ...env } })
    await addSendingDomain(world, service, tenant)
    return { world, service, tenant }
  }
  const inbound = { INBOUND_SMTP_HOST: '127.0.0.1', INBOUND_SMTP_PORT: '0' }
  const each = await startSender(sides.each, 'each', inbound)
  const shared = await startSender(sides.shared, 'shared', {})

  progress('warming up')
  await send(each, { sink, emails, messages: emails * recipients })
  await send(shared, { sink, emails, messages: emails })
  const measured = await inTurn<keyof typeof sides, number>(
    context,
    {
      each: {
        prepare: () => settleDown(each.world),
        measure: () => send(each, { sink, emails, messages: emails * recipients }),
      },
      shared: {
        prepare: () => settleDown(shared.world),
        measure: () => send(shared, { sink, emails, messages: emails }),
      },
    },
    (bytes) => `${formatNumber(bytes / emails)} bytes an email`,
  )
  for (const { world, service } of [each, shared]) {
    await service.stop()
    await world.close()
  }

  const processorTime = (side: keyof typeof sides) =>
    measured[side].map((round) => (1000 * secondsOf(round, [sides[side], 'sink'])) / emails)
  const bytes = (side: keyof typeof sides) => valuesOf(measured[side], (value) => value / emails / 1000)
  return {
    measurements: (['each', 'shared'] as const).flatMap((side) => [
      { side: sides[side], figure: 'processor time an email', unit: 'ms', values: processorTime(side) },
      { side: sides[side], figure: 'sent for an email', unit: 'KB', values: bytes(side) },
    ]),
    targets: [
      {
        figure: 'processor time, a copy for each to one copy',
        value: ratio(processorTime('each'), processorTime('shared')),
        goal: { atMost: 10 },
      },
    ],
    costs: costsOf({ [sides.each]: measured.each, [sides.shared]: measured.shared }),
    notes: [
      `A round is one request with ${emails} emails. The processor time is that of the service and the mail server, from the request until all is sent and written down; that of PostgreSQL is in the table of costs.`,
    ],
  }
}

function secondsOf({ cpuSeconds }: Round<unknown>, names: readonly string[]): number {
  return names.reduce((sum, name) => sum + (cpuSeconds.get(name) ?? 0), 0)
}

/** Sends `emails` emails in one request. Returns the bytes of all messages when the mail server has them. */
async function send(
  { world, service, tenant }: Sender,
  { sink, emails, messages }: { sink: MailSink; emails: number; messages: number },
): Promise<number> {
  await sink.reset()
  const since = new Date()
  const to = Array.from({ length: recipients }, (_, index) => `reader-${index}@recipients.example`)
  const answer = await fetch(`${service.url}/v1/emails/batch`, {
    method: 'POST',
    headers: { authorization: `Bearer ${tenant.key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ emails: Array.from({ length: emails }, () => ({ ...message, to })) }),
  })
  if (answer.status !== 202) throw new Error(`a batch was answered ${answer.status}: ${await answer.text()}`)
  await answer.arrayBuffer()
  await sink.until(messages)
  await untilSent(world, since)
  await assertTaken(sink, messages, ['rsa-sha256', 'ed25519-sha256'])
  return (await sink.messages()).meanBytes * messages
}
