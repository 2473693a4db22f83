import { randomBytes, randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import type { OpenAPIObject } from 'openapi3-ts/oas31'
import { Pool } from 'undici'
import { type HostileRequest, hostileRequests } from '../../support/hostile-bodies.ts'
import type { Benchmark, BenchmarkContext, Outcome } from '../benchmark.ts'
import { type Load, startCluster, startLoad, startService } from '../lab.ts'
import { addSendingDomain, sendingDomain } from '../mail.ts'
import { addTenants, settleDown, type Tenant } from '../seed.ts'
import { quantile } from '../statistics.ts'

/** As `MAX_BODY_BYTES` and `MAX_EMAIL_BODY_BYTES` are by default. */
const sizes = { usual: 1_048_576, large: 62_914_560 }
/** Hostile requests in flight. */
const atOnce = 2
/** Requests of the others in flight, of each kind. */
const connections = 2

export const hostileBodies: Benchmark = {
  name: 'hostile-bodies',
  measures: 'what others wait while the largest bodies come, each field in several shapes, two at once',
  baseline: 'the same requests of others alone',
  rounds: 1,
  // Of one look at the others, again and again until all bodies were sent.
  seconds: 2,
  run,
}

async function run(context: BenchmarkContext): Promise<Outcome> {
  const { processes, seconds, size, progress } = context
  const cluster = await startCluster(processes)
  await using world = await cluster.create('hostile')
  const [sender, other] = await addTenants(world, [{ urls: [] }, { urls: [] }])
  if (sender === undefined || other === undefined) throw new Error('there are no tenants')
  await settleDown(world)
  const service = await startService(processes, world, { roles: 'api' })
  await addSendingDomain(world, service, sender)
  const load = await startLoad(processes)
  const others = (forSeconds: number) => latenciesOfOthers(load, { url: service.url, other, seconds: forSeconds })

  progress('warming up, and measuring the others alone')
  await others(seconds)
  const alone = await others(4 * seconds)

  const document: OpenAPIObject = JSON.parse(
    await readFile(new URL('../../../openapi/openapi.json', import.meta.url), 'utf8'),
  )
  const all = [...hostileRequests(document, sizes), ...largestEmails()]
  const step = Math.max(1, Math.round(1 / size))
  const chosen = all.filter((_, index) => index % step === 0)
  progress(`${chosen.length} bodies, ${atOnce} at once`)
  const pool = new Pool(service.url, { connections: atOnce, headersTimeout: 0, bodyTimeout: 0 })
  const statuses = new Map<number, number>()
  const beside: number[] = []
  let isDone = false
  const sending = sendAll(chosen, async ({ name, method, path, body }) => {
    const { statusCode, body: answer } = await pool.request({
      method,
      path,
      headers: {
        authorization: `Bearer ${sender.key}`,
        'content-type': 'application/json',
        'idempotency-key': randomUUID(),
      },
      body: body(),
    })
    await answer.dump()
    if (statusCode >= 500) throw new Error(`${name}: ${statusCode}`)
    statuses.set(statusCode, (statuses.get(statusCode) ?? 0) + 1)
  }).finally(() => {
    isDone = true
  })
  // It is awaited below, when the others have been asked for the last time.
  sending.catch(() => undefined)
  while (!isDone) {
    beside.push(...(await others(seconds)))
    progress(
      `${[...statuses.values()].reduce((sum, count) => sum + count, 0)} answered, worst ${Math.round(Math.max(...beside))} ms`,
    )
  }
  await sending
  await pool.close()
  const peakBytes = (await processes.usage()).get('service')?.peakBytes ?? Number.NaN

  return {
    measurements: [
      ...figuresOf('others alone', alone),
      ...figuresOf('others beside', beside),
      { side: 'service', figure: 'peak memory', unit: 'MiB', values: [peakBytes / 2 ** 20] },
    ],
    targets: [
      { figure: 'worst answer to others', unit: 'ms', value: Math.max(...beside), goal: { atMost: 250 } },
      {
        figure: `peak memory to the ${atOnce} largest bodies`,
        value: peakBytes / (atOnce * sizes.large),
        goal: { atMost: 6 },
      },
    ],
    costs: [],
    notes: [
      `${chosen.length} bodies, each as large as its route takes (${sizes.usual} bytes, or ${sizes.large} with emails), ${atOnce} at once, with an Idempotency-Key: ${[...statuses].map(([status, count]) => `${count} answered ${status}`).join(', ')}.`,
      `The others are GET /healthz and GET /v1/subscribers of another account, ${connections} at a time: ${beside.length} answers.`,
    ],
  }
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

/** Does all, so many at once. */
async function sendAll(requests: readonly HostileRequest[], send: (request: HostileRequest) => Promise<void>) {
  const waiting = requests[Symbol.iterator]()
  const loop = async () => {
    for (const request of waiting) await send(request)
  }
  await Promise.all(Array.from({ length: atOnce }, loop))
}

/** Emails that are large and right. */
function largestEmails(): HostileRequest[] {
  const email = { from: `a@${sendingDomain}`, to: 'b@example.com', subject: 'Large' }
  const file = () => randomBytes(40 * 2 ** 20).toString('base64')
  const html = '<p>"Größe" &amp; 😀</p>\n'
  const bodies: Record<string, () => unknown> = {
    'a file of 40 MiB': () => ({ ...email, text: 'x', attachments: [{ filename: 'a.bin', content: file() }] }),
    'HTML of 10 MiB': () => ({ ...email, html: html.repeat(Math.floor((10 * 2 ** 20) / Buffer.byteLength(html))) }),
    'a batch of 100 with 250 KB each': () => ({
      emails: Array.from({ length: 100 }, () => ({ ...email, html: html.repeat(9_000) })),
    }),
  }
  return Object.entries(bodies).flatMap(([name, body]) =>
    // Two of a kind, which are in flight together.
    Array.from({ length: atOnce }, () => ({
      name,
      method: 'POST' as const,
      path: name.includes('batch') ? '/v1/emails/batch' : '/v1/emails',
      isLarge: true,
      body: () => Buffer.from(JSON.stringify(body())),
    })),
  )
}

function figuresOf(side: string, latencies: readonly number[]) {
  return [
    { side, figure: 'p99', unit: 'ms', values: [quantile(latencies, 0.99)] },
    { side, figure: 'worst', unit: 'ms', values: [Math.max(...latencies)] },
  ]
}
