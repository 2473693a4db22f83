import { connect, createServer } from 'node:net'
import { z } from 'zod'
import { handler, serve } from './serve.ts'

/*
 * A proxy in front of PostgreSQL that counts round trips: how often a client sends data after the server has sent some.
 * Data that is sent without waiting for a response counts as one.
 */

const target = new URL(z.string().parse(process.argv[2]))
let roundTrips = 0

const server = createServer({ noDelay: true }, (client) => {
  const database = connect({ host: target.hostname, port: Number(target.port), noDelay: true })
  let isAsking = false
  client.on('data', (chunk) => {
    if (!isAsking) roundTrips += 1
    isAsking = true
    database.write(chunk)
  })
  database.on('data', (chunk) => {
    isAsking = false
    client.write(chunk)
  })
  // When one end closes, the other is closed too.
  for (const [one, other] of [
    [client, database],
    [database, client],
  ] as const) {
    one.on('error', () => other.destroy()).on('close', () => other.destroy())
  }
})

server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the program has no port')
  const url = new URL(target)
  url.host = `127.0.0.1:${address.port}`
  serve({ connectionString: handler(z.null(), () => url.href), count: handler(z.null(), () => roundTrips) })
})
