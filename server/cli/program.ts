import { Command } from 'commander'
import { addAccountsCommands } from './commands/accounts.ts'
import { addKeysCommands } from './commands/keys.ts'
import { addMigrateCommand } from './commands/migrate.ts'
import { addUsersCommands } from './commands/users.ts'

/** Builds the command line. Its parser prints errors and throws CommanderError instead of ending the process. */
export function buildProgram(): Command {
  const program = new Command('postern')
    .description('Operates Postern: works while the service runs and while it is stopped.')
    .addHelpText(
      'after',
      '\nThe database is that of DATABASE_URL, or the embedded one in DATA_DIR (default: .postern/).',
    )
    .configureOutput({ outputError: (text, write) => write(inOurWords(text)) })
    .exitOverride()
  addKeysCommands(program)
  addAccountsCommands(program)
  addUsersCommands(program)
  addMigrateCommand(program)
  return program
}

/**
 * Rewrites errors of commander: `postern:` instead of `error:`, and `try --help` after errors about missing, unknown
 * and surplus arguments. Errors about values already say what is allowed.
 */
function inOurWords(text: string): string {
  return text
    .replace(/^error: ((?:missing|unknown|too many) .*)$/m, 'postern: $1; try --help')
    .replace(/^error: /, 'postern: ')
}
