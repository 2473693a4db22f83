import { type Command, InvalidArgumentError, Option } from 'commander'
import { maxAllowedAddresses } from '../../../contract/api-keys.ts'
import { timeInput } from '../../../contract/fields.ts'
import { type Grant, grants } from '../../../contract/permissions.ts'
import { type AccountService, createAccountService } from '../../accounts/service.ts'
import { type AddressRange, readRange, textOf } from '../../api-keys/address-ranges.ts'
import type { KeyMode } from '../../api-keys/key-format.ts'
import { createApiKeyService } from '../../api-keys/service.ts'
import type { Db } from '../../database/connection.ts'
import { systemClock } from '../../lib/clock.ts'
import { OperatorError } from '../../shared/errors.ts'
import { printJson, printLine, printTable } from '../output.ts'
import { withSession } from '../session.ts'
import { nameArgument } from './arguments.ts'

type CreateOptions = {
  mode: KeyMode
  permission: Grant[]
  name: string
  expiresAt?: Date
  allow: AddressRange[]
  account?: string
  json?: true
}
type ListOptions = { account?: string; json?: true }

/** Adds `keys create`, `keys list`, `keys revoke` and `keys delete`. */
export function addKeysCommands(program: Command): void {
  const keys = program.command('keys').description('make, list, revoke and delete API keys')

  keys
    .command('create')
    .description('make a key and print it; it is shown only now')
    .addOption(
      new Option('--mode <mode>', 'live keys send email, test keys only validate it')
        .choices(['test', 'live'])
        .makeOptionMandatory(),
    )
    .addOption(
      new Option('--permission <permission...>', `what the key may do, one or more of: ${grants.join(', ')}`)
        .argParser(collectGrant)
        .default([], 'full_access'),
    )
    .addOption(new Option('--name <name>', 'what people call the key').argParser(nameArgument).default('API key'))
    .addOption(
      new Option('--expires-at <time>', 'from when on the key is refused, such as 2027-01-31T00:00:00Z').argParser(
        futureArgument,
      ),
    )
    .addOption(
      new Option('--allow <address...>', 'the IP addresses and ranges it may be used from, such as 203.0.113.0/24')
        .argParser(collectRange)
        .default([], 'any'),
    )
    .option('--account <id>', 'whose key it is (default: the only account, made where there is none)')
    .option('--json', 'print one JSON object')
    .action(createKey)

  keys
    .command('list')
    .description('list the keys, revoked ones too; the keys themselves cannot be read again')
    .option('--account <id>', 'only those of one account')
    .option('--json', 'print a JSON array')
    .action(listKeys)

  keys
    .command('revoke')
    .description('end a key, at once and for good')
    .argument('<id>', 'the id of the key (key_…)')
    .option('--json', 'print one JSON object')
    .action(revokeKey)

  keys
    .command('delete')
    .description('end a key, at once and for good, and take it off the list')
    .argument('<id>', 'the id of the key (key_…)')
    .option('--json', 'print one JSON object')
    .action(deleteKey)
}

function collectGrant(value: string, collected: Grant[]): Grant[] {
  const grant = grants.find((known) => known === value)
  if (grant === undefined) throw new InvalidArgumentError(`It must be one of: ${grants.join(', ')}.`)
  return [...new Set([...collected, grant])]
}

function futureArgument(value: string): Date {
  const { data } = timeInput.safeParse(value)
  const time = data === undefined ? null : new Date(data)
  if (time !== null && time > systemClock.now()) return time
  throw new InvalidArgumentError('It must be a time that lies ahead, such as 2027-01-31T00:00:00Z.')
}

function collectRange(value: string, collected: AddressRange[]): AddressRange[] {
  const range = readRange(value)
  if (typeof range === 'string') throw new InvalidArgumentError(`It ${range}.`)
  if (collected.length === maxAllowedAddresses) {
    throw new InvalidArgumentError(`There must be at most ${maxAllowedAddresses} of them.`)
  }
  return [...collected, range]
}

async function createKey(options: CreateOptions): Promise<void> {
  const { mode, permission, name, account, json } = options
  const limits = { expiresAt: options.expiresAt ?? null, allowedAddresses: [...new Set(options.allow.map(textOf))] }
  const { key, accountId } = await withSession(async ({ db }) => {
    const { accounts, service } = services()
    const accountId = account ?? (await onlyAccountId(accounts, db))
    const permissions = permission.length === 0 ? (['full_access'] as const) : permission
    return { key: await service.create(db, { accountId, mode, permissions, name, limits }), accountId }
  })
  if (json) return printJson(key)
  console.log(`${key.key}\n\nThis is "${key.name}" (${key.id}), with ${key.permissions.join(', ')}.`)
  console.log(`It is a key of the account ${accountId}.`)
  if (key.expiresAt !== null) console.log(`It expires at ${key.expiresAt}.`)
  if (key.allowedAddresses.length > 0) console.log(`It may be used from ${key.allowedAddresses.join(', ')}.`)
  console.log('Keep it: it cannot be shown again.')
}

function services() {
  const accounts = createAccountService({ clock: systemClock })
  return { accounts, service: createApiKeyService({ clock: systemClock, accounts }) }
}

/** Returns the id of the only account, which is made where there is none. Throws OperatorError when there are several. */
export async function onlyAccountId(accounts: AccountService, db: Db): Promise<string> {
  const [first, ...others] = await accounts.list(db)
  if (others.length > 0)
    throw new OperatorError('there are several accounts; name one of "accounts list" with --account')
  return (first ?? (await accounts.create(db, { name: 'First account', plan: 'scale' }))).id
}

async function listKeys({ account, json }: ListOptions): Promise<void> {
  const keys = await withSession(async ({ db }) => {
    const { accounts, service } = services()
    const found = await service.list(db, account)
    if (account !== undefined && found.length === 0) await accounts.assertExists(db, account)
    return found
  })
  if (json) return printJson(keys)
  printTable(
    keys.map((key) => ({
      id: key.id,
      key: `postern_${key.mode}_…${key.lastFour}`,
      name: key.name,
      permissions: key.permissions.join(', '),
      account: key.accountId,
      created: key.createdAt,
      expires: key.expiresAt ?? '',
      'allowed from': key.allowedAddresses.join(', '),
      revoked: key.revokedAt ?? '',
    })),
    'There are no keys.',
  )
}

async function revokeKey(id: string, { json }: { json?: true }): Promise<void> {
  const key = await withSession(({ db }) => services().service.revoke(db, id))
  if (json) return printJson(key)
  printLine(`The key "${key.name}" (${key.id}) is revoked.`)
}

async function deleteKey(id: string, { json }: { json?: true }): Promise<void> {
  const key = await withSession(({ db }) => services().service.delete(db, id))
  if (json) return printJson(key)
  printLine(`The key "${key.name}" (${key.id}) is deleted.`)
}
