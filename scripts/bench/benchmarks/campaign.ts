import { setTimeout as delay } from 'node:timers/promises'
import { sql } from 'kysely'
import { createRenderer } from '../../../server/rendering/renderer.ts'
import type { Benchmark, BenchmarkContext, Outcome } from '../benchmark.ts'
import {
  addCampaign,
  addPeople,
  cancelCampaign,
  pauseCampaign,
  personalContent,
  startCampaign,
  untilStatus,
} from '../campaigns.ts'
import { startCluster, startLoad, startService, type World } from '../lab.ts'
import { describeSettings, installListmonk, type Listmonk, listmonkVersion, whyNoListmonk } from '../listmonk.ts'
import { addSender, addSendingDomain, assertTaken, sendingRequest, startMailSink, untilSent } from '../mail.ts'
import { watchMemory } from '../memory.ts'
import { formatNumber } from '../report.ts'
import { costsOf, inTurn, type Round, valuesOf } from '../rounds.ts'
import { settleDown } from '../seed.ts'
import { median, quantile, ratio } from '../statistics.ts'

/** People in the audience, and the share of them that is sent to until the campaign is paused. */
const allPeople = 1_000_000
const sentShare = 0.1
/** Connections to the mail server. */
const mailConnections = 20
/** Requests with one email in flight, on the side without a campaign. */
const connections = 32
/** Transactional emails a second, alone and beside a campaign. */
const singleRate = 10
/** People rendered at a time, as the service does. */
const renderedAtOnce = 200

export const campaign: Benchmark = {
  name: 'campaign',
  measures: 'a campaign to 1,000,000 people: its list, messages of 10 KB to a mail server, email sent singly meanwhile',
  baseline:
    'the same messages by POST /v1/emails, and by Listmonk where it is installed; email sent singly with nothing beside',
  rounds: 3,
  seconds: 10,
  run,
}

type Measured = {
  rate: number
  /** The rate of the campaign beside email that is sent singly. NaN: not measured. */
  rateBeside: number
  p99: number
  /** Milliseconds from the response to a pause until the last message began. NaN: not measured. */
  pauseMs: number
}

const nothing: Measured = { rate: Number.NaN, rateBeside: Number.NaN, p99: Number.NaN, pauseMs: Number.NaN }

async function run(context: BenchmarkContext): Promise<Outcome> {
  const { processes, seconds, size, progress } = context
  const cluster = await startCluster(processes)
  const sink = await startMailSink(processes)
  await using world = await cluster.create('campaign')
  const tenant = await addSender(world)
  const service = await startService(processes, world, {
    env: {
      MAIL_TRANSPORT: 'relay',
      SMTP_URL: `smtp://127.0.0.1:${sink.port}`,
      MAIL_CONNECTIONS_PER_HOST: String(mailConnections),
      PUBLIC_URL: 'https://mail.postern.example',
    },
  })
  await addSendingDomain(world, service, tenant)
  const load = await startLoad(processes)
  progress('adding people')
  const count = Math.max(1, Math.round(allPeople * size))
  const sent = Math.max(1, Math.round(count * sentShare))
  const all = await addPeople(world, tenant, count)
  await settleDown(world)
  const noListmonk = await whyNoListmonk()
  await using listmonkWorld = noListmonk === null ? await cluster.createEmpty('listmonk') : null
  const listmonk =
    listmonkWorld &&
    (await installListmonk(processes, { world: listmonkWorld, sink, people: sent, connections: mailConnections }))
  await using memory = watchMemory(service)

  const means = { service, tenant, world }
  const meanBytes = { campaign: Number.NaN, listmonk: Number.NaN }
  const begin = async (fields: Record<string, unknown> = {}) => {
    const id = await addCampaign(means, { audienceId: all, ...fields })
    await startCampaign(means, id)
    return id
  }
  const end = async (id: string) => {
    await sql`UPDATE campaigns SET status = 'canceled', due_at = NULL WHERE id = ${id}`.execute(world.db)
    await sql`DELETE FROM campaign_recipients WHERE campaign_id = ${id}`.execute(world.db)
    await sql`DELETE FROM campaigns WHERE id = ${id}`.execute(world.db)
  }

  /** Lists all people. Nothing is sent: the throttle allows one message an hour. */
  async function list(): Promise<Measured> {
    const began = performance.now()
    const id = await begin({ throttle: 1 })
    await untilStatus(world, id, 'sending')
    const took = (performance.now() - began) / 1000
    await end(id)
    return { ...nothing, rate: count / took }
  }

  /** Sends to the first people, from the first message on, and pauses then. */
  async function sendCampaign(): Promise<Measured> {
    await sink.reset()
    const id = await begin()
    await sink.until(1)
    const first = performance.now()
    await sink.until(sent)
    const rate = ((sent - 1) * 1000) / (performance.now() - first)
    await pauseCampaign(means, id)
    const paused = Date.now()
    await untilRested(world)
    const pauseMs = Math.max(0, (await sink.lastBegunAt()) - paused)
    await assertTaken(sink, await sink.count(), ['rsa-sha256', 'ed25519-sha256'])
    meanBytes.campaign = (await sink.messages()).meanBytes
    await cancelCampaign(means, id)
    await end(id)
    return { ...nothing, rate, pauseMs }
  }

  async function sendByListmonk({ measure }: Listmonk): Promise<Measured> {
    const seconds = await measure()
    meanBytes.listmonk = (await sink.messages()).meanBytes
    return { ...nothing, rate: (sent - 1) / seconds }
  }

  /** Sends as many emails by requests. */
  async function sendEmails(): Promise<Measured> {
    await sink.reset()
    const since = new Date()
    const began = performance.now()
    const requests = [sendingRequest(tenant, 1)]
    await load.run({ origins: [service.url], requests, seconds: 3_600, count: sent, connections }, 202)
    await sink.until(sent)
    await untilSent(world, since)
    return { ...nothing, rate: (sent * 1000) / (performance.now() - began) }
  }

  /** Sends emails singly and returns how long they take from when they are stored to the mail server. */
  async function sendSingly(): Promise<Measured> {
    const since = new Date()
    const requests = [sendingRequest(tenant, 1)]
    await load.run({ origins: [service.url], requests, seconds, connections, rate: singleRate }, 202)
    return { ...nothing, rate: singleRate, p99: quantile(await latenciesOfSingle(world, since), 0.99) }
  }

  async function sendSinglyBeside(): Promise<Measured> {
    const id = await begin()
    await sink.reset()
    await sink.until(1)
    const began = performance.now()
    const measured = await sendSingly()
    const sentMeanwhile = (await sink.count()) - singleRate * seconds
    const rateBeside = (sentMeanwhile * 1000) / (performance.now() - began)
    const { rows } = await sql<{ status: string }>`SELECT status FROM campaigns WHERE id = ${id}`.execute(world.db)
    if (rows[0]?.status !== 'sending') throw new Error('the campaign ended before: give it more people (--size)')
    await cancelCampaign(means, id)
    await untilRested(world)
    await end(id)
    return { ...measured, rateBeside }
  }

  progress('warming up')
  const singles = { ...context, seconds }
  await sendEmails()
  const prepare = () => settleDown(world)
  const sides = await inTurn<
    'list' | 'campaign' | 'emails' | 'Listmonk' | 'singly, alone' | 'singly, beside',
    Measured
  >(
    singles,
    {
      list: { prepare, measure: list },
      campaign: { prepare, measure: sendCampaign },
      emails: { prepare, measure: sendEmails },
      Listmonk: listmonk && { prepare: listmonk.prepare, measure: () => sendByListmonk(listmonk) },
      'singly, alone': { prepare, measure: sendSingly },
      'singly, beside': { prepare, measure: sendSinglyBeside },
    },
    ({ rate, p99 }) => (Number.isNaN(p99) ? `${Math.round(rate)}/s` : `p99 ${p99.toFixed(1)} ms`),
  )
  const { idleBytes, peakBytes } = memory.stop()
  await service.stop()
  const rendered = await renderFor(seconds)

  const [listed, messages, emails] = [ratesOf(sides.list), ratesOf(sides.campaign), ratesOf(sides.emails)]
  const [alone, beside] = [
    valuesOf(sides['singly, alone'], ({ p99 }) => p99),
    valuesOf(sides['singly, beside'], ({ p99 }) => p99),
  ]
  const pauses = valuesOf(sides.campaign, ({ pauseMs }) => pauseMs)
  const aboveIdle = (peakBytes - idleBytes) / 2 ** 20
  return {
    measurements: [
      { side: 'campaign', figure: 'listed', unit: '/s', values: listed },
      { side: 'campaign', figure: 'sent', unit: '/s', values: messages },
      {
        side: 'campaign',
        figure: 'sent, beside email sent singly',
        unit: '/s',
        values: valuesOf(sides['singly, beside'], ({ rateBeside }) => rateBeside),
      },
      { side: 'POST /v1/emails', figure: 'sent', unit: '/s', values: emails },
      ...(listmonk === null
        ? []
        : [{ side: 'Listmonk', figure: 'sent', unit: '/s', values: ratesOf(sides.Listmonk) } as const]),
      { side: 'campaign', figure: 'begun after the response to a pause, for', unit: 'ms', values: pauses },
      { side: 'alone', figure: 'p99 of an email sent singly', unit: 'ms', values: alone },
      { side: 'beside a campaign', figure: 'p99 of an email sent singly', unit: 'ms', values: beside },
      { side: 'campaign', figure: 'memory above idle', unit: 'MiB', values: [aboveIdle] },
      { side: 'renderer', figure: 'rendered', unit: '/s', values: [rendered] },
    ],
    targets: [
      {
        figure: 'seconds to list 1,000,000 people',
        unit: 's',
        value: allPeople / median(listed),
        goal: { atMost: 60 },
      },
      { figure: 'campaign to emails', value: ratio(messages, emails), goal: { atLeast: 0.9 } },
      { figure: 'p99 beside a campaign to alone', value: ratio(beside, alone), goal: { atMost: 2 } },
      { figure: 'begun after a pause, for', unit: 'ms', value: Math.max(...pauses), goal: { atMost: 1_000 } },
      { figure: 'memory above idle', unit: 'MiB', value: aboveIdle, goal: { atMost: 300 } },
      { figure: 'rendered by one process', unit: '/s', value: rendered, goal: { atLeast: 3_000 } },
    ],
    costs: costsOf(sides),
    notes: [
      `The list of ${formatNumber(count)} people, until the first message may leave; then a campaign to them, from its first message until ${formatNumber(sent)} have come, when it is paused. A message has ${formatNumber(meanBytes.campaign)} bytes and is rendered with Liquid for each person. ${mailConnections} connections to the mail server.`,
      `Without a campaign, as many emails with ${connections} requests in flight. What is sent singly is sent at ${singleRate}/s for ${seconds} s; its time is from when it was stored until the answer of the mail server.`,
      'Memory is that of the process of the service, sampled every 0.25 s in all rounds; templates are rendered in a process beside it, with a heap of 128 MiB at most.',
      noListmonk === null
        ? noteOnListmonk(sides, { sent, meanBytes: meanBytes.listmonk })
        : `Listmonk was not measured: ${noListmonk}.`,
    ],
  }
}

type Sides = Readonly<Record<'campaign' | 'Listmonk', readonly Round<Measured>[]>>

function ratesOf(rounds: readonly Round<Measured>[]): number[] {
  return valuesOf(rounds, ({ rate }) => rate)
}

function noteOnListmonk(
  { campaign, Listmonk }: Sides,
  { sent, meanBytes }: { sent: number; meanBytes: number },
): string {
  return [
    `Campaign to Listmonk: ${formatNumber(ratio(ratesOf(campaign), ratesOf(Listmonk)))}.`,
    `Listmonk ${listmonkVersion} sends the same text to ${formatNumber(sent)} people, from its first message until its campaign is finished, over as many connections.`,
    `Its messages have ${formatNumber(meanBytes)} bytes and no signature; each of the service is signed with DKIM twice.`,
    'It keeps a mark and a count for a campaign; the service stores each email and what became of it.',
    describeSettings(mailConnections),
  ].join(' ')
}

/** Returns the milliseconds from storing to the answer of the mail server, of emails of no campaign since `since`. */
async function latenciesOfSingle(world: World, since: Date): Promise<number[]> {
  await untilSingleSent(world, since)
  const { rows } = await sql<{ ms: number }>`
    SELECT extract(epoch FROM t.at - e.created_at)::float8 * 1000 AS ms
    FROM emails e JOIN email_timeline t ON t.email_id = e.id AND t.type = 'sent'
    WHERE e.campaign_id IS NULL AND e.created_at >= ${since}
  `.execute(world.db)
  if (rows.length === 0) throw new Error('nothing was sent singly')
  return rows.map(({ ms }) => ms)
}

async function untilSingleSent({ db }: World, since: Date): Promise<void> {
  for (;;) {
    const { rows } = await sql<{ open: number }>`
      SELECT count(*)::int AS open FROM emails
      WHERE campaign_id IS NULL AND created_at >= ${since} AND status IN ('queued', 'sending')
    `.execute(db)
    if (rows[0]?.open === 0) return
    await delay(50)
  }
}

/** Waits until nothing is on its way any more. */
async function untilRested({ db }: World): Promise<void> {
  for (;;) {
    const { rows } = await sql<{ open: boolean }>`
      SELECT EXISTS (SELECT FROM emails WHERE status IN ('queued', 'sending')) AS open
    `.execute(db)
    if (rows[0]?.open === false) return
    await delay(50)
  }
}

/** Renders for so many seconds with one process. Returns messages a second. */
async function renderFor(seconds: number): Promise<number> {
  const renderer = createRenderer()
  try {
    const people = Array.from({ length: renderedAtOnce }, (_, n) => ({
      contact: { id: `sub_${n}`, email: `reader-${n}@example.com`, firstName: 'Ada', lastName: null },
      unsubscribeUrl: `https://mail.postern.example/u/${n}`,
    }))
    await renderer.render(personalContent, people)
    let done = 0
    const began = performance.now()
    while (performance.now() - began < seconds * 1000) done += (await renderer.render(personalContent, people)).length
    return (done * 1000) / (performance.now() - began)
  } finally {
    await renderer[Symbol.asyncDispose]()
  }
}
