import { once } from 'node:events'
import { type App, startApp } from './app.ts'
import { type Config, readConfig } from './config.ts'
import { OperatorError } from './errors.ts'
import { createLogger } from './logging.ts'
import { stopSignal } from './signals.ts'
import { welcome, welcomeWorker } from './welcome.ts'

/** Shows the keys of the first account to the people at the terminal: they must not come into a log. */
async function greet(app: App, { roles, mail }: Config): Promise<void> {
  const first = await app.ensureFirstAccount()
  const keys = first === null ? null : { test: first.testKey.key, live: first.liveKey.key }
  process.stdout.write(roles.api ? welcome(app.url, keys, mail) : welcomeWorker(app.url, mail))
}

/** Runs the service until it is told to stop. */
async function run(): Promise<void> {
  const config = readConfig()
  const stopping = stopSignal()
  const logger = createLogger({ level: config.logLevel })
  await using app = await startApp(config, { logger })
  await greet(app, config)
  if (!stopping.aborted) await Promise.race([once(stopping, 'abort'), app.failed])
}

try {
  await run()
} catch (error) {
  if (error instanceof OperatorError) process.stderr.write(`postern: ${error.message}\n`)
  else createLogger({ level: 'fatal' }).fatal({ err: error }, 'the service ended because of a fault of its own')
  process.exitCode = 1
}

// All is closed by now. What is open all the same belongs to a database that does not answer.
setTimeout(() => process.exit(), 500).unref()
