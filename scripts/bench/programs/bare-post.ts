import pg from 'pg'
import { Pool } from 'undici'
import { z } from 'zod'
import { handler, serve } from './serve.ts'

/* Posts the bodies of events from memory and does nothing else: the minimum cost of delivering. */

const loadSchema = z.object({ connectionString: z.string(), count: z.int() })
const runSchema = z.object({ origin: z.string(), paths: z.array(z.string()).min(1), connections: z.int() })

let bodies: { id: string; body: string }[] = []

async function load({ connectionString, count }: z.output<typeof loadSchema>): Promise<number> {
  const client = new pg.Client({ connectionString })
  await client.connect()
  const { rows } = await client.query<{ id: string; body: string }>(
    'SELECT id, body FROM events ORDER BY id DESC LIMIT $1',
    [count],
  )
  await client.end()
  bodies = rows
  return bodies.length
}

/** Constant headers of the same length as those of the service. */
const headers = {
  'content-type': 'application/json; charset=utf-8',
  'user-agent': 'Postern-Webhooks/1',
  'x-service-signature': '0'.repeat(64),
  'webhook-timestamp': '1700000000',
  'webhook-signature': `v1,${'A'.repeat(43)}=`,
}

async function run({ origin, paths, connections }: z.output<typeof runSchema>): Promise<{ seconds: number }> {
  const pool = new Pool(origin, { connections, pipelining: 1 })
  let next = 0
  const began = performance.now()
  const loop = async () => {
    for (;;) {
      const mine = next++
      const event = bodies[mine]
      const path = paths[mine % paths.length]
      if (event === undefined || path === undefined) return
      const answer = await pool.request({
        method: 'POST',
        path,
        headers: { ...headers, 'webhook-id': event.id },
        body: event.body,
      })
      await answer.body.dump()
      if (answer.statusCode !== 200) throw new Error(`the receiver answered ${answer.statusCode}`)
    }
  }
  await Promise.all(Array.from({ length: connections }, loop))
  const seconds = (performance.now() - began) / 1000
  await pool.close()
  return { seconds }
}

serve({ load: handler(loadSchema, load), run: handler(runSchema, run) })
