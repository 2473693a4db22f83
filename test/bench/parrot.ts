import { z } from 'zod'
import { handler, serve } from '../../scripts/bench/programs/serve.ts'

/* A program that says what it is told. */

serve({
  say: handler(z.string(), (text) => text),
  write: handler(z.string(), (text) => {
    process.stdout.write(text)
  }),
  fail: handler(z.null(), () => {
    throw new Error('it fell off its perch')
  }),
  die: handler(z.null(), () => {
    process.stderr.write('this parrot is no more\n')
    process.exit(3)
  }),
  work: handler(z.number(), (ms) => {
    const { user, system } = process.cpuUsage()
    while (process.cpuUsage().user + process.cpuUsage().system < user + system + ms * 1000);
    return ms
  }),
})
