import { Command, CommanderError } from 'commander'
import { messageOf } from '../errno.ts'
import { DomainError, OperatorError } from '../errors.ts'
import { addAccountsCommands } from './commands/accounts.ts'
import { addKeysCommands } from './commands/keys.ts'
import { addMigrateCommand } from './commands/migrate.ts'

/** The command line. Its exit codes: 0 done, 1 not possible, 2 not understood. */
function buildProgram(): Command {
  const program = new Command('postern')
    .description('Operates Postern: works while the service runs and while it is stopped.')
    .addHelpText(
      'after',
      '\nThe database is that of DATABASE_URL, or the embedded one in DATA_DIR (default: .postern/).',
    )
    .configureOutput({ outputError: (text, write) => write(text.replace(/^error: /, 'postern: ')) })
    .exitOverride()
  addKeysCommands(program)
  addAccountsCommands(program)
  addMigrateCommand(program)
  return program
}

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
