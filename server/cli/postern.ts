import { CommanderError } from 'commander'
import { messageOf } from '../lib/error-codes.ts'
import { stopSignal } from '../lib/stop-signal.ts'
import { DomainError, OperatorError } from '../shared/errors.ts'
import { buildProgram } from './program.ts'

/** Prints an error that commander has not printed. Returns the exit code: 1 for a failure, 2 for wrong usage. */
function exitCodeOf(error: unknown): number {
  // Commander has printed the message.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
  const isExpected = error instanceof OperatorError || error instanceof DomainError
  console.error(isExpected ? `postern: ${messageOf(error)}` : error)
  return 1
}

// A first Ctrl-C is ignored: commands are short, and one that is cut off could leave the embedded database running.
stopSignal()

try {
  await buildProgram().parseAsync()
} catch (error) {
  process.exitCode = exitCodeOf(error)
}
