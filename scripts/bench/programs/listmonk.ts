import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { z } from 'zod'
import { handler, serve } from './serve.ts'

/* Runs the `listmonk` on the path until this program is stopped. Fails when Listmonk ends before. */

const listmonk = spawn('listmonk', process.argv.slice(2), { stdio: ['ignore', 'inherit', 'inherit'] })
let isStopping = false
// Not `once`: `leash.ts` may send the signal too.
process.on('SIGTERM', () => {
  isStopping = true
  listmonk.kill()
})
// This program ends when Listmonk ends: a response shows that Listmonk runs.
serve({ ping: handler(z.null(), () => undefined) })
await once(listmonk, 'exit')
process.exit(isStopping ? 0 : 1)
