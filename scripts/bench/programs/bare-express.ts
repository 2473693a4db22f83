import { randomUUID } from 'node:crypto'
import express from 'express'
import pg from 'pg'
import { z } from 'zod'
import { handler, serve } from './serve.ts'

/*
 * The baseline of the API: Express and `pg` read and write the same rows as in a tutorial, without authentication,
 * limits, validation or events.
 */

const [connectionString, accountId] = z.tuple([z.string(), z.string()]).parse(process.argv.slice(2))
const pool = new pg.Pool({ connectionString, max: 10 })
const app = express()
app.use(express.json())

app.get('/v1/webhooks/:id', async (req, res) => {
  const { rows } = await pool.query(
    `SELECT id, url, events, description, status, disabled_reason, created_at, updated_at
     FROM webhooks WHERE account_id = $1 AND id = $2`,
    [accountId, req.params.id],
  )
  const [row] = rows
  if (row === undefined) {
    res.status(404).json({ error: 'not found' })
    return
  }
  res.json({
    id: row.id,
    url: row.url,
    events: row.events,
    description: row.description,
    status: row.status,
    disabledReason: row.disabled_reason,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  })
})

app.post('/v1/audiences/:audienceId/contacts', async (req, res) => {
  const { audienceId } = req.params
  const { email, firstName } = req.body
  const id = `sub_${randomUUID()}`
  const client = await pool.connect()
  try {
    await client.query('BEGIN')
    const person = await client.query(
      `INSERT INTO subscribers (id, account_id, email, email_key, first_name)
       VALUES ($1, $2, $3, lower($3), $4) RETURNING status`,
      [id, accountId, email, firstName],
    )
    const contact = await client.query(
      `INSERT INTO contacts (audience_id, subscriber_id, account_id, status)
       VALUES ($1, $2, $3, $4) RETURNING created_at, updated_at`,
      [audienceId, id, accountId, person.rows[0].status],
    )
    await client.query('COMMIT')
    res.status(201).json({
      audienceId,
      subscriberId: id,
      email,
      firstName,
      lastName: null,
      status: person.rows[0].status,
      createdAt: contact.rows[0].created_at,
      updatedAt: contact.rows[0].updated_at,
    })
  } catch (error) {
    await client.query('ROLLBACK')
    throw error
  } finally {
    client.release()
  }
})

const server = app.listen(0, '127.0.0.1', () => {
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the program has no port')
  serve({ url: handler(z.null(), () => `http://127.0.0.1:${address.port}`) })
})
