import { z } from 'zod'
import { connect } from '../../../server/database/connection.ts'
import { fanOutBatch } from '../../../server/fan-out/fan-out.ts'
import { systemClock } from '../../../server/lib/clock.ts'
import { startQueue } from '../../../server/queue/queue.ts'
import { handler, serve } from './serve.ts'

/* Runs only the fan-out of the service, without deliveries, to measure its own rate. */

const connectionString = z.string().parse(process.argv[2])
const onError = (error: Error) => process.stderr.write(`${error.message}\n`)
const db = connect({ connectionString, max: 2, onError })
const queue = await startQueue({ connectionString, works: false, onError })

async function run(): Promise<{ deliveries: number; seconds: number }> {
  const began = performance.now()
  let deliveries = 0
  for (;;) {
    const made = await fanOutBatch({ db, queue, clock: systemClock })
    if (made.events === 0) return { deliveries, seconds: (performance.now() - began) / 1000 }
    deliveries += made.deliveries
  }
}

serve({ run: handler(z.null(), run) })
