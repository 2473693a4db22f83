import { CommanderError } from 'commander'
import { messageOf } from '../lib/error-codes.ts'
import { stopSignal } from '../lib/stop-signal.ts'
import { DomainError, OperatorError } from '../shared/errors.ts'
import { buildProgram } from './program.ts'

/** 1: not possible. 2: not understood. */
function exitCodeOf(error: unknown): number {
  // Said already.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
  const isExpected = error instanceof OperatorError || error instanceof DomainError
  console.error(isExpected ? `postern: ${messageOf(error)}` : error)
  return 1
}

// A command is done in a moment, and goes on. Cut short, it could leave the embedded database running.
stopSignal()

try {
  await buildProgram().parseAsync()
} catch (error) {
  process.exitCode = exitCodeOf(error)
}
