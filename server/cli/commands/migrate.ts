import type { Command } from 'commander'
import { installQueue } from '../../queue/queue.ts'
import { OperatorError } from '../../shared/errors.ts'
import { printJson } from '../output.ts'
import { withSession } from '../session.ts'

/** Adds `migrate`. */
export function addMigrateCommand(program: Command): void {
  program
    .command('migrate')
    .description('bring the database to the schema of this version, as a start of the service does')
    .option('--json', 'print one JSON object')
    .action(migrate)
}

async function migrate({ json }: { json?: true }): Promise<void> {
  const applied = await withSession(async ({ connectionString, migrated }) => {
    const errors: Error[] = []
    await installQueue(connectionString, (error) => errors.push(error))
    const [failure] = errors
    if (failure !== undefined) {
      throw new OperatorError(`the queue's tables could not be made: ${failure.message}`, { cause: failure })
    }
    return migrated
  })
  if (json) return printJson({ applied })
  console.log(applied.length === 0 ? 'The database is up to date.' : `Applied: ${applied.join(', ')}.`)
}
