import { CommanderError } from 'commander'
import { messageOf } from '../errno.ts'
import { DomainError, OperatorError } from '../errors.ts'
import { buildProgram } from './program.ts'

/** 1: not possible. 2: not understood. */
function exitCodeOf(error: unknown): number {
  // Said already.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
  const isExpected = error instanceof OperatorError || error instanceof DomainError
  console.error(isExpected ? `postern: ${messageOf(error)}` : error)
  return 1
}

// A command is done in a moment. Cut short, it could leave the embedded database running; a second
// signal does cut it short.
process.once('SIGINT', () => undefined)
process.once('SIGTERM', () => undefined)

try {
  await buildProgram().parseAsync()
} catch (error) {
  process.exitCode = exitCodeOf(error)
}
