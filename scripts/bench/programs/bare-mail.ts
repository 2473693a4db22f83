import { createTransport } from 'nodemailer'
import { z } from 'zod'
import { handler, serve } from './serve.ts'

/* Sends messages with nodemailer alone, with its pool and DKIM signatures: the minimum cost of sending. */

const runSchema = z.object({
  port: z.int(),
  connections: z.int(),
  count: z.int(),
  message: z.object({ from: z.string(), subject: z.string(), html: z.string(), text: z.string() }),
  dkim: z.object({ domainName: z.string(), keySelector: z.string(), privateKey: z.string() }),
})

/** Messages in the queue of nodemailer for each connection. */
const begunPerConnection = 4

async function run({ port, connections, count, message, dkim }: z.output<typeof runSchema>) {
  const transport = createTransport({
    pool: true,
    host: '127.0.0.1',
    port,
    maxConnections: connections,
    maxMessages: Number.POSITIVE_INFINITY,
    dkim,
  })
  let next = 0
  const loop = async () => {
    while (next < count) await transport.sendMail({ ...message, to: `reader-${next++}@example.net` })
  }
  const began = performance.now()
  await Promise.all(Array.from({ length: connections * begunPerConnection }, loop))
  const seconds = (performance.now() - began) / 1000
  transport.close()
  return { seconds }
}

serve({ run: handler(runSchema, run) })
