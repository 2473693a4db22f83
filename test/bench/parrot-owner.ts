import { createProcesses } from '../../scripts/bench/processes.ts'

/* Starts a program, tells its process id, and waits to be killed. */

const parrot = await createProcesses().start({ name: 'parrot', file: import.meta.resolve('./parrot.ts') })
process.stdout.write(`${parrot.pid}\n`)
