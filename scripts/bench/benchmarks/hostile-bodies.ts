import { randomBytes, randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import type { OpenAPIObject } from 'openapi3-ts/oas31'
import { Pool } from 'undici'
import { z } from 'zod'
import { type HostileRequest, hostileRequests } from '../../support/hostile-bodies.ts'
import type { Benchmark, BenchmarkContext, Outcome } from '../benchmark.ts'
import { type Load, startCluster, startLoad, startService, type World } from '../lab.ts'
import { addSendingDomain, sendingDomain } from '../mail.ts'
import { addTenants, settleDown, type Tenant } from '../seed.ts'
import { quantile } from '../statistics.ts'

/** The defaults of `MAX_BODY_BYTES` and `MAX_EMAIL_BODY_BYTES`. */
const sizes = { usual: 1_048_576, large: 62_914_560 }
/** Hostile requests in flight. */
const atOnce = 2
/** Requests of other clients in flight, of each kind. */
const connections = 2

export const hostileBodies: Benchmark = {
  name: 'hostile-bodies',
  measures: 'what others wait while the largest bodies and answers come, each field in several shapes, two at once',
  baseline: 'the same requests of others alone',
  rounds: 1,
  // Length of one measurement of the others, repeated until all hostile requests are answered.
  seconds: 2,
  run,
}

/** A request with its only expected status. Without `status`, any status is expected except errors of the service. */
type Request = Pick<HostileRequest, 'name' | 'path'> & {
  method: HostileRequest['method'] | 'GET'
  body?: () => Buffer
  status?: number
}

async function run(context: BenchmarkContext): Promise<Outcome> {
  const { processes, seconds, size, progress } = context
  const cluster = await startCluster(processes)
  await using world = await cluster.create('hostile')
  const [sender, other] = await addTenants(world, [{ urls: [] }, { urls: [] }])
  if (sender === undefined || other === undefined) throw new Error('there are no tenants')
  await settleDown(world)
  const env = { MAIL_TRANSPORT: 'capture', SMTP_URL: undefined }
  const service = await startService(processes, world, { roles: 'api', env })
  // The messages that it captures are requested below.
  await startService(processes, world, { name: 'worker', roles: 'worker', env })
  await addSendingDomain(world, service, sender)
  const load = await startLoad(processes)
  const others = (forSeconds: number) => latenciesOfOthers(load, { url: service.url, other, seconds: forSeconds })

  progress('warming up, and measuring the others alone')
  await others(seconds)
  const alone = await others(4 * seconds)

  const pool = new Pool(service.url, { connections: atOnce, headersTimeout: 0, bodyTimeout: 0 })
  const statuses = new Map<number, number>()

  /** Sends a request and returns the start of the response. */
  async function send({ name, method, path, body, status }: Request): Promise<string> {
    const answer = await pool.request({
      method,
      path,
      headers: {
        authorization: `Bearer ${sender?.key}`,
        ...(body !== undefined && { 'content-type': 'application/json', 'idempotency-key': randomUUID() }),
      },
      body: body?.() ?? null,
    })
    const text = await beginningOf(answer.body)
    const { statusCode } = answer
    if (statusCode >= 500 || (status !== undefined && statusCode !== status)) {
      throw new Error(`${name}: ${statusCode} ${text.slice(0, 300)}`)
    }
    statuses.set(statusCode, (statuses.get(statusCode) ?? 0) + 1)
    return text
  }

  async function peakOfService(): Promise<number> {
    return (await processes.usage()).get('service')?.peakBytes ?? Number.NaN
  }

  /** Measures the latencies of other clients while all requests are sent, and the peak memory so far. */
  async function beside(side: string, requests: readonly Request[]) {
    progress(`${requests.length} ${side}, ${atOnce} at once`)
    const latencies: number[] = []
    let isDone = false
    const answers: string[] = []
    const sent: string[] = []
    const sending = sendAll(requests, async (request) => {
      sent.push(request.name)
      answers.push(await send(request))
    }).finally(() => {
      isDone = true
    })
    // Awaited below, after the last measurement of the others.
    sending.catch(() => undefined)
    while (!isDone) {
      const first = Math.max(0, sent.length - atOnce)
      const worstBefore = Math.max(0, ...latencies)
      latencies.push(...(await others(seconds)))
      const worst = Math.max(...latencies)
      progress(`${answers.length} answered, worst ${Math.round(worst)} ms`)
      if (worst > worstBefore) progress(`the worst was beside ${[...new Set(sent.slice(first))].join('; ')}`)
    }
    await sending
    return { side, latencies, answers, peakBytes: await peakOfService() }
  }

  const document: OpenAPIObject = JSON.parse(
    await readFile(new URL('../../../openapi/openapi.json', import.meta.url), 'utf8'),
  )
  const step = Math.max(1, Math.round(1 / size))
  const hostile = hostileRequests(document, sizes).filter((_, index) => index % step === 0)
  const refused = await beside('hostile bodies', hostile)
  const taken = await beside('large emails', largestEmails())
  const emails = taken.answers.flatMap((answer) => firstEmailOf(answer))
  const shown = await beside('answers with large emails', emails.map(answerWith('/v1/emails')))
  progress('waiting for the emails to be captured')
  const captured = await beside(
    'answers with captured messages',
    (await capturedOf(world, emails)).map(answerWith('/v1/captured-messages')),
  )
  await pool.close()
  const all = [refused, taken, shown, captured]
  const worst = Math.max(...all.flatMap(({ latencies }) => Math.max(...latencies)))

  return {
    measurements: [
      ...figuresOf('others alone', alone),
      ...all.flatMap(({ side, latencies }) => figuresOf(`others beside ${side}`, latencies)),
      ...all.map(({ side, peakBytes: bytes }) => ({
        side: 'service',
        figure: `peak memory up to the ${side}`,
        unit: 'MiB',
        values: [bytes / 2 ** 20],
      })),
    ],
    targets: [
      { figure: 'worst answer to others', unit: 'ms', value: worst, goal: { atMost: 250 } },
      {
        figure: `peak memory to the ${atOnce} largest bodies`,
        value: taken.peakBytes / (atOnce * sizes.large),
        goal: { atMost: 6 },
      },
    ],
    costs: [],
    notes: [
      `${hostile.length} bodies, each as large as its route takes (${sizes.usual} bytes, or ${sizes.large} with emails), and ${taken.answers.length} emails that are large and right, ${atOnce} at once, with an Idempotency-Key; then those emails and their captured messages are asked for: ${[...statuses].map(([status, count]) => `${count} answered ${status}`).join(', ')}. Emails that are right must be taken.`,
      'The memory that the target is about is that of the bodies. Answers with captured messages, which are up to 55 MiB, come after them.',
      'Emails are sent by another process, whose time and memory are not in the figures of the service.',
      `The others are GET /healthz and GET /v1/subscribers of another account, ${connections} at a time: ${all.reduce((sum, { latencies }) => sum + latencies.length, 0)} answers.`,
    ],
  }
}

/** Reads a whole response and returns its start, or all of one that is not large. */
async function beginningOf(body: AsyncIterable<Buffer>): Promise<string> {
  const kept: Buffer[] = []
  for await (const piece of body) if (kept.length < 20) kept.push(piece)
  return Buffer.concat(kept).toString()
}

const accepted = z.object({ id: z.string() })

/** Returns the id of the accepted email, or of the first of a batch. */
function firstEmailOf(answer: string): string[] {
  const read: unknown = JSON.parse(answer)
  const { data = [read] } = Object(read)
  return z
    .array(accepted)
    .parse(data)
    .slice(0, 1)
    .map(({ id }) => id)
}

function answerWith(path: string) {
  return (id: string): Request => ({ name: `GET ${path}`, method: 'GET', path: `${path}/${id}`, status: 200 })
}

const capturedPollMs = 200
/** Milliseconds until giving up, far longer than it takes. */
const capturedLimitMs = 180_000

/** Waits until all emails are captured. Returns the ids of the captured messages. */
async function capturedOf({ db }: World, emailIds: readonly string[]): Promise<string[]> {
  const deadline = performance.now() + capturedLimitMs
  while (performance.now() < deadline) {
    const rows = await db
      .selectFrom('captured_messages')
      .select('id')
      .where('email_id', 'in', [...emailIds])
      .execute()
    if (rows.length === emailIds.length) return rows.map(({ id }) => id)
    await delay(capturedPollMs)
  }
  throw new Error(`not all emails were captured within ${capturedLimitMs / 1000} s`)
}

async function latenciesOfOthers(
  load: Load,
  { url, other, seconds }: { url: string; other: Tenant; seconds: number },
): Promise<number[]> {
  const { latencies } = await load.run(
    {
      origins: [url],
      requests: [
        { method: 'GET', path: '/healthz', headers: {} },
        { method: 'GET', path: '/v1/subscribers', headers: { authorization: `Bearer ${other.key}` } },
      ],
      seconds,
      connections,
    },
    200,
  )
  return latencies
}

/** Sends all requests, `atOnce` at a time. */
async function sendAll(requests: readonly Request[], send: (request: Request) => Promise<void>) {
  const waiting = requests[Symbol.iterator]()
  const loop = async () => {
    for (const request of waiting) await send(request)
  }
  await Promise.all(Array.from({ length: atOnce }, loop))
}

/** Returns valid requests with large emails. */
function largestEmails(): Request[] {
  const email = { from: `a@${sendingDomain}`, to: 'b@example.com', subject: 'Large' }
  const file = (mebibytes: number) => randomBytes(mebibytes * 2 ** 20).toString('base64')
  const html = '<p>"Größe" &amp; 😀</p>\n'
  const longHtml = () => html.repeat(Math.floor((10 * 2 ** 20) / Buffer.byteLength(html)))
  const bodies: Record<string, () => unknown> = {
    'a file of 40 MiB': () => ({ ...email, text: 'x', attachments: [{ filename: 'a.bin', content: file(40) }] }),
    'HTML and text of 10 MiB each': () => ({ ...email, html: longHtml(), text: longHtml() }),
    'HTML of 10 MiB and a file of 34 MiB': () => ({
      ...email,
      html: longHtml(),
      attachments: [{ filename: 'a.bin', content: file(34) }],
    }),
    'a batch of 100 with 250 KB each': () => ({
      emails: Array.from({ length: 100 }, () => ({ ...email, html: html.repeat(9_000) })),
    }),
  }
  return Object.entries(bodies).flatMap(([name, body]) =>
    // Several of a kind, so that they are in flight together.
    Array.from({ length: atOnce }, () => ({
      name,
      method: 'POST' as const,
      path: name.includes('batch') ? '/v1/emails/batch' : '/v1/emails',
      body: () => Buffer.from(JSON.stringify(body())),
      status: 202,
    })),
  )
}

function figuresOf(side: string, latencies: readonly number[]) {
  return [
    { side, figure: 'p99', unit: 'ms', values: [quantile(latencies, 0.99)] },
    { side, figure: 'worst', unit: 'ms', values: [Math.max(...latencies)] },
  ]
}
