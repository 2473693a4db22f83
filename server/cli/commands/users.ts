import { type Command, InvalidArgumentError, Option } from 'commander'
import { emailAddress } from '../../../contract/fields.ts'
import { type Role, roles } from '../../../contract/roles.ts'
import { createAccountService } from '../../accounts/service.ts'
import { readServiceUrl } from '../../config/config.ts'
import { systemClock } from '../../lib/clock.ts'
import { OperatorError } from '../../shared/errors.ts'
import { commandLine } from '../../shared/scope.ts'
import { createMemberService } from '../../users/members.ts'
import { createUserOperatorService, type UserInfo } from '../../users/operator.ts'
import { printJson, printLine, printTable } from '../output.ts'
import { withSession } from '../session.ts'
import { onlyAccountId } from './keys.ts'

type InviteOptions = { account?: string; role: Role; json?: true }
type ResetOptions = { removeTotp?: true; json?: true }
type OperatorOptions = { yes?: true; remove?: true; json?: true }

/** Adds `users invite`, `users list`, `users reset-password` and `users operator`. */
export function addUsersCommands(program: Command): void {
  const users = program.command('users').description('invite people to the dashboard, list them, help them in')

  users
    .command('invite')
    .description('make a link with which a person becomes a member; it works once, for 7 days')
    .argument('<email>', 'the address of the person', emailArgument)
    .option('--account <id>', 'the account to be a member of (default: the only one)')
    .addOption(new Option('--role <role>', 'what the person may do there').choices(roles).default('owner'))
    .option('--json', 'print one JSON object')
    .action(invite)

  users
    .command('list')
    .description('list the users, with the accounts they are members of')
    .option('--json', 'print a JSON array')
    .action(listUsers)

  users
    .command('reset-password')
    .description('make a link that sets a new password; it works once, for an hour')
    .argument('<email>', 'the address of the user', emailArgument)
    .option('--remove-totp', 'also remove the second factor, for a user who has lost it')
    .option('--json', 'print one JSON object')
    .action(resetPassword)

  users
    .command('operator')
    .description('mark a user as an operator of the service')
    .argument('<email>', 'the address of the user', emailArgument)
    .option('--yes', 'mark the user that this command shows without it')
    .option('--remove', 'take the mark away')
    .option('--json', 'print one JSON object')
    .action(markOperator)
}

/** Parses an email address, as the API takes it. */
function emailArgument(value: string): string {
  const { success, data } = emailAddress.safeParse(value)
  if (!success) throw new InvalidArgumentError('It must be an email address, such as ada@example.com.')
  return data
}

function operatorService() {
  return createUserOperatorService({ clock: systemClock, serviceUrl: readServiceUrl })
}

async function invite(email: string, { account, role, json }: InviteOptions): Promise<void> {
  const invitation = await withSession(async ({ db }) => {
    const accounts = createAccountService({ clock: systemClock })
    const accountId = account ?? (await onlyAccountId(accounts, db))
    await accounts.assertExists(db, accountId)
    const members = createMemberService({ clock: systemClock, serviceUrl: readServiceUrl })
    return members.invite(db, { accountId, author: commandLine }, { email, role })
  })
  if (json) return printJson(invitation)
  console.log(`${invitation.link}\n`)
  printLine(`This makes ${invitation.email} a member with the role ${invitation.role}. It works once, for 7 days.`)
}

async function listUsers({ json }: { json?: true }): Promise<void> {
  const users = await withSession(({ db }) => operatorService().list(db))
  if (json) return printJson(users)
  printTable(
    users.map((user) => ({
      email: user.email,
      name: user.name,
      accounts: user.memberships.map(({ accountId, role }) => `${role} of ${accountId}`).join(', '),
      operator: user.isOperator ? 'yes' : '',
      verified: user.emailVerifiedAt === null ? '' : 'yes',
      'second factor': user.hasTotp ? 'yes' : '',
      'last signed in': user.lastSignedInAt ?? '',
    })),
    'There are no users.',
  )
}

async function resetPassword(email: string, { removeTotp, json }: ResetOptions): Promise<void> {
  const made = await withSession(({ db }) =>
    operatorService().resetPassword(db, email, { removeTotp: removeTotp === true }),
  )
  if (json) return printJson(made)
  console.log(`${made.link}\n`)
  printLine(`This sets a new password for ${email}. It works once, for an hour.`)
  if (made.hasTotp) printLine('It needs the second factor too. For a user who has lost it, add --remove-totp.')
}

async function markOperator(email: string, { yes, remove, json }: OperatorOptions): Promise<void> {
  const isOperator = remove !== true
  if (isOperator && yes !== true) {
    const user = await withSession(({ db }) => operatorService().find(db, email))
    throw new OperatorError(`${describe(user)}. If that is the person you mean, run this again with --yes`)
  }
  const user = await withSession(({ db }) => operatorService().setOperator(db, email, isOperator))
  if (json) return printJson(user)
  printLine(isOperator ? `This user is an operator now: ${describe(user)}.` : `${email} is no operator any more.`)
}

function describe({ email, name, createdAt, emailVerifiedAt, memberships }: UserInfo): string {
  const roles = memberships.map(({ accountId, role }) => `${role} of ${accountId}`).join(', ')
  const proof = emailVerifiedAt === null ? 'address not verified' : 'address verified'
  return `${email}: "${name}", made ${createdAt}, ${proof}, ${roles || 'member of no account'}`
}
