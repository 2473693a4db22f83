import { once } from 'node:events'
import type { Logger } from 'pino'
import type { App, AppOptions } from './app.ts'
import { type Config, readConfig, warningsOfRetiredSettings } from './config/config.ts'
import { openDatabase } from './database/open.ts'
import { stopSignal } from './lib/stop-signal.ts'
import { createLogger } from './observability/logging.ts'
import { type ProcessFaults, watchProcessFaults } from './observability/process-faults.ts'
import { OperatorError } from './shared/errors.ts'
import { welcome, welcomeWorker } from './welcome.ts'

export type RunOptions = Pick<AppOptions, 'dashboardBuilt'>

/** Prints the keys and the link of the first account to the terminal, since they must never be in a log. */
async function greet(app: App, config: Config): Promise<void> {
  const made = await app.ensureFirstAccount()
  const first = made && { test: made.testKey.key, live: made.liveKey.key, userLink: made.userLink }
  const nobodySignsIn = first === null && config.roles.api && !(await app.hasUsers())
  process.stdout.write(
    config.roles.api ? welcome(app.url, { first, nobodySignsIn }, config) : welcomeWorker(app.url, config),
  )
}

/**
 * Loads the modules of the service and starts it. Loading them keeps this process busy for about as long as a new
 * database takes to be created by another process. So that one is started first, and both happen at once.
 */
async function startBesideDatabase(
  config: Config,
  options: { logger: Logger; faults: Pick<ProcessFaults, 'rejections'> } & RunOptions,
): Promise<App> {
  const busy = Promise.withResolvers<void>()
  const opening = openDatabase(config.database, busy.resolve)
  try {
    await Promise.race([busy.promise, opening])
    const [{ startApp }, opened] = await Promise.all([import('./app.ts'), opening])
    return await startApp(config, { ...options, opened })
  } catch (error) {
    // Closed already where the service did not start; not where its modules could not be loaded.
    await opening.then(
      (opened) => opened[Symbol.asyncDispose](),
      () => undefined,
    )
    throw error
  }
}

/** Runs the service until a signal or an error ends it. Returns the exit code. */
async function run(options: RunOptions): Promise<number> {
  const config = readConfig()
  const stopping = stopSignal()
  const logger = createLogger({ level: config.logLevel })
  for (const warning of warningsOfRetiredSettings()) logger.warn(warning)
  const faults = watchProcessFaults((err, what) => logger.fatal({ err }, what))
  await using app = await startBesideDatabase(config, { logger, faults, ...options })
  await greet(app, config)
  const ending = AbortSignal.any([stopping, faults.uncaught])
  if (!ending.aborted) await Promise.race([once(ending, 'abort'), app.failed])
  return faults.uncaught.aborted ? 1 : 0
}

/** Runs the service in this process, and sets its exit code. */
export async function runService(options: RunOptions = {}): Promise<void> {
  try {
    process.exitCode = await run(options)
  } catch (error) {
    if (error instanceof OperatorError) process.stderr.write(`postern: ${error.message}\n`)
    else createLogger({ level: 'fatal' }).fatal({ err: error }, 'the service ended because of an internal error')
    process.exitCode = 1
  }
  // Everything is closed by now, except connections to a database that does not respond.
  setTimeout(() => process.exit(), 500).unref()
}
