import { randomUUID } from 'node:crypto'
import express from 'express'
import pg from 'pg'
import { Pool } from 'undici'
import { z } from 'zod'
import { handler, serve } from './serve.ts'

/*
 * A minimal path from a request to a delivered event that is stored first: one transaction with the person and the
 * event, one POST, one UPDATE that marks it as delivered. Without authentication, limits, validation, signatures,
 * retries, or recovery after a crash.
 */

const [connectionString, accountId, target] = z.tuple([z.string(), z.string(), z.string()]).parse(process.argv.slice(2))
const { origin, pathname: path } = new URL(target)
const database = new pg.Pool({ connectionString, max: 10 })
await database.query(
  `CREATE TABLE IF NOT EXISTS bare_events (
    subscriber_id text COLLATE "C" PRIMARY KEY, body text NOT NULL, delivered_at timestamptz
  )`,
)
const receivers = new Pool(origin, { connections: 64, pipelining: 1 })
const app = express()
app.use(express.json())

type Delivery = { id: string; body: string }

async function deliver({ id, body }: Delivery): Promise<void> {
  const headers = { 'content-type': 'application/json', 'webhook-id': id }
  const answer = await receivers.request({ method: 'POST', path, headers, body })
  await answer.body.dump()
  await database.query('UPDATE bare_events SET delivered_at = now() WHERE subscriber_id = $1', [id])
}

/** Adds a person and the event about it in one transaction. */
async function add(email: string): Promise<Delivery> {
  const id = `sub_${randomUUID()}`
  const body = JSON.stringify({ id, type: 'subscriber.added', data: { subscriberId: id, email, status: 'active' } })
  const client = await database.connect()
  try {
    await client.query('BEGIN')
    const person = [id, accountId, email]
    await client.query(
      'INSERT INTO subscribers (id, account_id, email, email_key) VALUES ($1, $2, $3, lower($3))',
      person,
    )
    await client.query('INSERT INTO bare_events (subscriber_id, body) VALUES ($1, $2)', [id, body])
    await client.query('COMMIT')
    return { id, body }
  } catch (error) {
    await client.query('ROLLBACK')
    throw error
  } finally {
    client.release()
  }
}

app.post('/v1/subscribers', async (req, res) => {
  const delivery = await add(req.body.email)
  res.status(201).json({ id: delivery.id, email: req.body.email, status: 'active' })
  // A failure ends the program and thereby the benchmark.
  void deliver(delivery)
})

const server = app.listen(0, '127.0.0.1', () => {
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the program has no port')
  serve({ url: handler(z.null(), () => `http://127.0.0.1:${address.port}`) })
})
