import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { stepAt, totpCode } from '../../server/users/totp.ts'
import { compileCache } from '../support/compile-cache.ts'
import { goodPassword, pageHeaders, signUp } from '../support/people.ts'
import { startTestService, type TestService } from '../support/service.ts'

const program = join(import.meta.dirname, '..', '..', 'server', 'cli', 'postern.ts')
let service: TestService

beforeAll(async () => {
  service = await startTestService({ roles: { worker: false } })
})
afterAll(() => service.stop())

/** Runs `postern users` on the database of the service. Returns what it prints. */
async function users(...args: string[]): Promise<string> {
  const env = {
    ...compileCache,
    DATABASE_URL: service.database.connectionString,
    PUBLIC_URL: 'https://mail.example.com',
  }
  const { stdout } = await promisify(execFile)(process.execPath, [program, 'users', ...args], { env })
  return stdout
}

function tokenOf(link: string): string {
  return /^https:\/\/mail\.example\.com\/app\/accept#token=([\w-]{43})$/.exec(link)?.[1] ?? expect.fail(link)
}

function accept(json: object) {
  return service.client.send('POST', '/v1/links/accept', { key: null, headers: pageHeaders(service.url), json })
}

test('users invite prints a link that makes an owner', async () => {
  const args = ['invite', 'Ada@example.com', '--account', service.accountId, '--json']
  const invitation = JSON.parse(await users(...args))
  expect(invitation).toMatchObject({ email: 'ada@example.com', role: 'owner' })
  const answer = await accept({ token: tokenOf(invitation.link), name: 'Ada', password: goodPassword })
  expect(answer).toMatchObject({ status: 201, body: { accounts: [{ id: service.accountId, role: 'owner' }] } })
})

test('users invite asks which account is meant when there are several, and refuses one that is not there', async () => {
  await expect(users('invite', 'b@example.com')).rejects.toMatchObject({
    code: 1,
    stderr: 'postern: there are several accounts; name one of "accounts list" with --account\n',
  })
  await expect(users('invite', 'b@example.com', '--account', 'acc_x')).rejects.toMatchObject({
    stderr: 'postern: There is no account with the id "acc_x".\n',
  })
})

test('users reset-password prints a link that sets a new password', async () => {
  const { email } = await signUp(service)
  const [link = '', , said] = (await users('reset-password', email)).split('\n')
  expect(said).toBe(`This sets a new password for ${email}. It works once, for an hour.`)
  expect((await accept({ token: tokenOf(link), password: 'a password that is new' })).status).toBe(201)
  await expect(users('reset-password', 'nobody@example.com')).rejects.toMatchObject({
    stderr: 'postern: There is no user with the address "nobody@example.com".\n',
  })
})

test('users reset-password says when a second factor is asked for as well', async () => {
  const { email, send } = await signUp(service)
  const made = await send('POST', '/v1/user/totp', { json: { password: goodPassword } })
  const code = totpCode(Object(made.body).secret, stepAt(service.clock.now()))
  expect((await send('POST', '/v1/user/totp/confirm', { json: { code } })).status).toBe(200)
  expect(await users('reset-password', email)).toContain('--remove-totp')
  expect(await users('reset-password', email, '--remove-totp')).not.toContain('--remove-totp')
})

test('users operator shows the user first, marks them with --yes, and users list shows it', async () => {
  const { email, userId } = await signUp(service, { role: 'viewer' })
  const isMarked = async () => {
    const listed: { id: string; isOperator: boolean }[] = JSON.parse(await users('list', '--json'))
    return listed.find(({ id }) => id === userId)?.isOperator
  }
  const shown = `${email}: "Ada Lovelace", made TIME, address not verified, viewer of ${service.accountId}.`
  const withoutTime = (text: string) => text.replace(/\d{4}-[\d-]+T[\d:.]+Z/, 'TIME')
  const asked: { code: number; stderr: string } = await users('operator', email).catch((error) => error)
  expect(asked.code).toBe(1)
  expect(withoutTime(asked.stderr)).toBe(
    `postern: ${shown} If that is the person you mean, run this again with --yes\n`,
  )
  expect(await isMarked()).toBe(false)
  expect(withoutTime(await users('operator', email, '--yes'))).toBe(`This user is an operator now: ${shown}\n`)
  expect(await isMarked()).toBe(true)
  expect(await users('operator', email, '--remove')).toBe(`${email} is no operator any more.\n`)
  expect(await isMarked()).toBe(false)
  const table = await users('list')
  expect(table).toContain(`viewer of ${service.accountId}`)
  expect(table).not.toContain('argon2')
})
