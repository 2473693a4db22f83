import { type Command, Option } from 'commander'
import { createAccountService } from '../../accounts/service.ts'
import { systemClock } from '../../lib/clock.ts'
import { OperatorError } from '../../shared/errors.ts'
import { printJson, printTable } from '../output.ts'
import { withSession } from '../session.ts'
import { nameArgument } from './arguments.ts'

type CreateOptions = { plan: string; name: string; json?: true }

/** Adds `accounts create` and `accounts list`. */
export function addAccountsCommands(program: Command): void {
  const accounts = program.command('accounts').description('make and list accounts')

  accounts
    .command('create')
    .description('make an account')
    .requiredOption('--plan <plan>', 'which of the plans in RATE_LIMITS it has: free, pro, scale')
    .addOption(new Option('--name <name>', 'what people call it').argParser(nameArgument).default('Account'))
    .option('--json', 'print one JSON object')
    .action(createAccount)

  accounts.command('list').description('list the accounts').option('--json', 'print a JSON array').action(listAccounts)
}

async function createAccount({ plan, name, json }: CreateOptions): Promise<void> {
  const account = await withSession(async ({ db, plans }) => {
    if (!plans.includes(plan)) {
      throw new OperatorError(`there is no plan "${plan}"; RATE_LIMITS has ${plans.join(', ')}`)
    }
    return createAccountService({ clock: systemClock }).create(db, { name, plan })
  })
  if (json) return printJson(account)
  console.log(`The account "${account.name}" (${account.id}) is made, on the plan ${account.plan}.`)
  console.log(`Make a key for it with: npm run --silent postern -- keys create --mode test --account ${account.id}`)
}

async function listAccounts({ json }: { json?: true }): Promise<void> {
  const accounts = await withSession(({ db }) => createAccountService({ clock: systemClock }).list(db))
  if (json) return printJson(accounts)
  printTable(
    accounts.map(({ id, name, plan, createdAt }) => ({ id, name, plan, created: createdAt })),
    'There are no accounts.',
  )
}
