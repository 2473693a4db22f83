import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createUserOperatorService } from '../../server/users/operator.ts'
import { stepAt, totpCode } from '../../server/users/totp.ts'
import { createTestTime, type TestTime } from '../support/clock.ts'
import { goodPassword, invite, type Person, pageHeaders, signIn, signUp } from '../support/people.ts'
import { startTestService, type TestService } from '../support/service.ts'

let service: TestService
let time: TestTime
let otherAccountId: string

beforeAll(async () => {
  time = createTestTime()
  service = await startTestService({ roles: { worker: false }, time })
  const accounts = await service.database.db.selectFrom('accounts').select('id').where('name', '=', 'Theirs').execute()
  otherAccountId = accounts[0]?.id ?? ''
})
afterAll(() => service.stop())

/** The entries about a user in an account, oldest first. */
async function entriesOf({ userId }: Person, accountId = service.accountId) {
  const rows = await service.database.db
    .selectFrom('audit_log')
    .selectAll()
    .where('account_id', '=', accountId)
    .where('target_id', '=', userId)
    .orderBy('id')
    .execute()
  return rows.map(({ action, actor_type: by, details }) => ({ action, by, details }))
}

function operator() {
  return createUserOperatorService({ clock: service.clock, serviceUrl: () => service.url })
}

test('the audit log has an entry for a new name, in each account of the user, with one statement', async () => {
  const person = await signUp(service)
  const token = await invite(service, { accountId: otherAccountId, email: person.email })
  const json = { token, password: goodPassword }
  await service.client.send('POST', '/v1/links/accept', { key: null, headers: pageHeaders(service.url), json })
  const { db } = service.database
  await sql`CREATE TABLE audit_inserts (rows bigint)`.execute(db)
  await sql`
      CREATE FUNCTION count_inserts() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN INSERT INTO audit_inserts SELECT count(*) FROM added; RETURN NULL; END $$
    `.execute(db)
  await sql`
      CREATE TRIGGER count_inserts AFTER INSERT ON audit_log REFERENCING NEW TABLE AS added
      FOR EACH STATEMENT EXECUTE FUNCTION count_inserts()
    `.execute(db)
  expect((await person.send('PATCH', '/v1/user', { json: { name: 'Ada King' } })).status).toBe(200)
  // The same name again is no change.
  expect((await person.send('PATCH', '/v1/user', { json: { name: 'Ada King' } })).status).toBe(200)
  const { rows } = await sql<{ rows: string }>`SELECT rows FROM audit_inserts`.execute(db)
  expect(rows).toEqual([{ rows: '2' }])
  await sql`DROP TRIGGER count_inserts ON audit_log`.execute(db)
  const renamed = { action: 'user.renamed', by: 'user', details: { from: 'Ada Lovelace' } }
  for (const accountId of [service.accountId, otherAccountId]) {
    expect((await entriesOf(person, accountId)).filter(({ action }) => action === 'user.renamed')).toEqual([renamed])
  }
})

test('the audit log has an entry for a recovery code that replaces the second factor, with how many are left', async () => {
  const person = await signUp(service)
  const made = await person.send('POST', '/v1/user/totp', { json: { password: goodPassword } })
  const code = totpCode(Object(made.body).secret, stepAt(time.clock.now()))
  const { body } = await person.send('POST', '/v1/user/totp/confirm', { json: { code } })
  const [first = ''] = Object(body).recoveryCodes
  expect((await signIn(service, { email: person.email, code: first })).status).toBe(201)
  expect((await signIn(service, { email: person.email, code: first })).status).toBe(401)
  const entries = await entriesOf(person)
  expect(entries.filter(({ action }) => action === 'totp.recovery_code_used')).toEqual([
    { action: 'totp.recovery_code_used', by: 'user', details: { left: '9' } },
  ])
  expect(JSON.stringify(entries)).not.toContain(first)
})

test('the audit log has an entry for a link of the command line that resets a password, and for the mark of an operator', async () => {
  const person = await signUp(service)
  const { db } = service.database
  const { link } = await operator().resetPassword(db, person.email)
  // A mark that is there already is no change.
  for (const isOperator of [true, true, false]) await operator().setOperator(db, person.email, isOperator)
  const made = (await entriesOf(person)).filter(({ by }) => by === 'command_line')
  expect(made.map(({ action }) => action)).toEqual([
    'password.reset_link_created',
    'user.operator_added',
    'user.operator_removed',
  ])
  expect(JSON.stringify(made)).not.toContain(link.slice(link.indexOf('#token=') + 7))
})
