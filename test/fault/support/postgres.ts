import { readFile, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { freePort } from '../../../scripts/support/free-port.ts'
import { startEmbeddedDatabase } from '../../../server/database/embedded/start.ts'
import { createRunDirectory, dataDirOf } from '../../support/run-directory.ts'

/** A PostgreSQL of a test's own, as durable as it is by default, always at the same port. */
export type Postgres = AsyncDisposable & {
  connectionString: string
  /** Of its files and whatever else a test puts there; goes with it. */
  directory: string
  /** The user it runs as. */
  uid: number
  /** Ends it with all its processes at once, as the kernel does when memory runs out. */
  kill(): Promise<void>
  /** Starts it again, after which it recovers. */
  restart(): Promise<void>
  /** Ends it in order. */
  stop(): Promise<void>
}

export async function startPostgres(): Promise<Postgres> {
  const runDirectory = await createRunDirectory()
  const dataDir = dataDirOf(runDirectory)
  const port = await freePort()
  const start = () => startEmbeddedDatabase({ dataDir, settings: { port: String(port) } })
  let server = await start()
  const url = new URL(server.connectionString)
  url.port = String(port)

  return {
    connectionString: url.href,
    directory: runDirectory,
    uid: (await stat(join(dataDir, 'postgres'))).uid,
    async kill() {
      const [postmaster] = (await readFile(join(dataDir, 'postgres', 'data', 'postmaster.pid'), 'utf8')).split('\n')
      for (const pid of [Number(postmaster), ...(await childrenOf(Number(postmaster)))]) kill(pid)
      // Gives its lock back, too.
      await server.stop()
    },
    async restart() {
      server = await start()
    },
    stop: () => server.stop(),
    async [Symbol.asyncDispose]() {
      await server.stop()
      await rm(runDirectory, { recursive: true, force: true })
    },
  }
}

/** Its processes besides the first, which end by themselves soon after it where they cannot be told. */
async function childrenOf(pid: number): Promise<number[]> {
  const text = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '')
  return text.split(' ').filter(Boolean).map(Number)
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // Gone already.
  }
}
