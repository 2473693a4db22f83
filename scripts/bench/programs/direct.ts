import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { Pool } from 'undici'
import { z } from 'zod'
import { newId } from '../../../server/shared/ids.ts'
import { handler, serve } from './serve.ts'

/* One INSERT, then one POST after its commit, at a fixed rate: the shortest path from a commit to a receiver. */

const connectionString = z.string().parse(process.argv[2])
const database = new pg.Pool({ connectionString, max: 10 })
await database.query('CREATE TABLE IF NOT EXISTS direct (id text COLLATE "C" PRIMARY KEY, body text NOT NULL)')

const runSchema = z.object({ origin: z.string(), path: z.string(), rate: z.number(), seconds: z.number() })

async function run({ origin, path, rate, seconds }: z.output<typeof runSchema>): Promise<number> {
  const pool = new Pool(origin, { connections: 64, pipelining: 1 })
  const open = new Set<Promise<void>>()
  let sent = 0

  async function send(): Promise<void> {
    const id = newId('event', new Date())
    const body = JSON.stringify({ id, type: 'subscriber.added', data: { email: `${id}@example.com` } })
    await database.query('INSERT INTO direct (id, body) VALUES ($1, $2)', [id, body])
    const headers = { 'content-type': 'application/json', 'webhook-id': id }
    const answer = await pool.request({ method: 'POST', path, headers, body })
    await answer.body.dump()
  }

  const began = performance.now()
  for (let elapsed = 0; elapsed < seconds; elapsed = (performance.now() - began) / 1000) {
    for (const due = Math.floor(elapsed * rate); sent < due; sent++) {
      const sending: Promise<void> = send().finally(() => open.delete(sending))
      open.add(sending)
    }
    await delay(1)
  }
  await Promise.all(open)
  await pool.close()
  return sent
}

serve({ run: handler(runSchema, run) })
