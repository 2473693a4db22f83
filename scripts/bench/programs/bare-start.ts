import express from 'express'
import pg from 'pg'
import { z } from 'zod'
import { startEmbeddedDatabase } from '../../../server/database/embedded/start.ts'
import { serve } from './serve.ts'

/*
 * The baseline of a start: the same embedded database in a fresh directory, one query, and Express with one page that
 * has a field. No tables, no queue, no API.
 */

const [dataDir, port] = z.tuple([z.string(), z.coerce.number()]).parse(process.argv.slice(2))
const stopping = Promise.withResolvers<void>()
process.on('SIGTERM', () => stopping.resolve())

const page = `<!doctype html>
<html lang="en">
  <head><meta charset="utf-8"><title>Bare</title></head>
  <body><h1>Bare</h1><form><input name="email"></form></body>
</html>
`

await using database = await startEmbeddedDatabase({ dataDir })
const pool = new pg.Pool({ connectionString: database.connectionString })
pool.on('error', () => undefined)
await pool.query('SELECT 1')
const app = express()
app.get('/', (_req, res) => res.type('html').send(page))
const server = app.listen(port, '127.0.0.1', () => serve({}))
await stopping.promise
server.close()
server.closeAllConnections()
await pool.end()
await database.stop()
process.exit()
