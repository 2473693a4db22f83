import { setTimeout as delay } from 'node:timers/promises'
import { Pool } from 'undici'
import { z } from 'zod'
import { handler, serve } from './serve.ts'

/* Clients of the API: send requests as fast as they are answered, or at a fixed rate, until they end or are stopped. */

const requestSchema = z.object({
  method: z.enum(['GET', 'POST', 'PATCH']),
  path: z.string(),
  headers: z.record(z.string(), z.string()),
  /** `{n}` is replaced by a number that is unique in the run. */
  body: z.string().optional(),
})
const runSchema = z.object({
  /** Services, used in rotation. */
  origins: z.array(z.string()).min(1),
  /** Sent in rotation. */
  requests: z.array(requestSchema).min(1),
  seconds: z.number(),
  /** Most requests; the run may end before `seconds`. Null: no limit. */
  count: z.int().nullable(),
  /** Most requests in flight. */
  connections: z.int(),
  /** Requests per second, whether answered or not. Null: the next one as soon as one is answered. */
  rate: z.number().nullable(),
  firstNumber: z.int(),
  /** Response header by whose value statuses are counted. */
  groupBy: z.string().nullable(),
})
type Run = z.output<typeof runSchema>

/** Time of the last `stop`. It ends runs that started before. */
let stoppedAt = 0

async function run({ origins, requests, seconds, count, connections, rate, firstNumber, groupBy }: Run) {
  const pools = origins.map((origin) => new Pool(origin, { connections, pipelining: 1 }))
  const latencies: number[] = []
  const statuses = new Map<string, number>()
  let number = firstNumber
  let failed = 0
  let lastFailure = ''

  async function send(): Promise<void> {
    const mine = number++
    const pool = pools[mine % pools.length]
    const request = requests[mine % requests.length]
    if (pool === undefined || request === undefined) return
    const { method, path, headers, body } = request
    const began = performance.now()
    try {
      const answer = await pool.request({ method, path, headers, body: body?.replaceAll('{n}', String(mine)) ?? null })
      await answer.body.dump()
      latencies.push(performance.now() - began)
      const group = groupBy === null ? '' : String(answer.headers[groupBy])
      const key = `${answer.statusCode} ${group}`
      statuses.set(key, (statuses.get(key) ?? 0) + 1)
    } catch (error) {
      failed += 1
      lastFailure = String(error)
    }
  }

  const began = performance.now()
  const end = began + seconds * 1000
  const isOver = () =>
    number - firstNumber >= (count ?? Number.POSITIVE_INFINITY) || performance.now() >= end || stoppedAt > began
  if (rate === null) await asAnswered()
  else await atRate(rate)
  const elapsed = (performance.now() - began) / 1000
  await Promise.all(pools.map((pool) => pool.close()))
  if (failed > 0) throw new Error(`${failed} requests failed: ${lastFailure}`)
  return {
    seconds: elapsed,
    latencies,
    nextNumber: number,
    statuses: [...statuses].map(([key, count]) => {
      const [status, group] = key.split(' ')
      return { status: Number(status), group, count }
    }),
  }

  async function asAnswered(): Promise<void> {
    const loop = async () => {
      while (!isOver()) await send()
    }
    await Promise.all(Array.from({ length: connections }, loop))
  }

  async function atRate(perSecond: number): Promise<void> {
    const open = new Set<Promise<void>>()
    for (let sent = 0; !isOver(); ) {
      const due = Math.floor(((performance.now() - began) / 1000) * perSecond)
      for (; sent < due && open.size < connections && !isOver(); sent++) {
        const sending: Promise<void> = send().finally(() => open.delete(sending))
        open.add(sending)
      }
      await delay(1)
    }
    await Promise.all(open)
  }
}

serve({
  run: handler(runSchema, run),
  stop: handler(z.null(), () => {
    stoppedAt = performance.now()
  }),
})
