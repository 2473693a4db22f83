import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { constants, setPriority } from 'node:os'
import { fileURLToPath } from 'node:url'
import { keepCompiled } from '../server/lib/compile-cache.ts'

/*
 * `npm start`: runs the service, and builds the dashboard beside it where its sources have changed. The service does not
 * wait for that; requests for the dashboard do.
 */

/** Resolves when the dashboard is built, or cannot be, which is said on stderr. Ends with this process. */
async function buildDashboard(): Promise<void> {
  const program = import.meta.resolve('./dashboard.ts')
  const child = spawn(process.execPath, [fileURLToPath(program), '--if-stale'], { stdio: 'inherit' })
  if (child.pid !== undefined) setPriority(child.pid, constants.priority.PRIORITY_BELOW_NORMAL)
  process.once('exit', () => child.kill())
  await once(child, 'exit').catch((error) => process.stderr.write(`The dashboard was not built: ${error.message}\n`))
}

keepCompiled()
const dashboardBuilt = buildDashboard()
const { runService } = await import('../server/run-service.ts')
await runService({ dashboardBuilt })
