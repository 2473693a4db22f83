import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { permissions } from '../../contract/permissions.ts'
import { type Role, rolePermissions, roles } from '../../contract/roles.ts'
import { mayAssign } from '../../server/users/roles.ts'
import { untilSessionsWait } from '../support/locks.ts'
import { type Person, signUp } from '../support/people.ts'
import { startTestService, type TestService } from '../support/service.ts'

let service: TestService
let otherAccountId: string

beforeAll(async () => {
  service = await startTestService({ roles: { worker: false } })
  const accounts = await service.database.db.selectFrom('accounts').select('id').where('name', '=', 'Theirs').execute()
  otherAccountId = accounts[0]?.id ?? ''
})
afterAll(() => service.stop())

describe('who may give which role', () => {
  const nobody = [null, ...roles]
  const allowed = (own: Role) =>
    nobody.flatMap((from) => nobody.filter((to) => mayAssign(own, { from, to })).map((to) => [from, to]))

  test('an owner may everything', () => {
    expect(allowed('owner')).toHaveLength(nobody.length ** 2)
  })

  test('an admin may everything but what is about owners', () => {
    expect(allowed('admin').flat()).not.toContain('owner')
    expect(allowed('admin')).toHaveLength((nobody.length - 1) ** 2)
  })

  test.each(['developer', 'marketer', 'viewer'] as const)('a %s may nothing', (own) => {
    expect(allowed(own)).toEqual([])
  })

  test('no role has a permission that an owner lacks, and each permission is known', () => {
    for (const role of roles) for (const held of rolePermissions[role]) expect(permissions).toContain(held)
    expect(rolePermissions.owner).toEqual(permissions)
  })
})

const setRole = (by: Person, userId: string, role: Role, accountId?: string) =>
  by
    .send('PATCH', `/v1/members/${userId}`, { json: { role }, ...(accountId && { accountId }) })
    .then(({ status }) => status)

test('members cannot make themselves more than they are', async () => {
  const [admin, developer] = [await signUp(service, { role: 'admin' }), await signUp(service, { role: 'developer' })]
  expect(await setRole(admin, admin.userId, 'owner')).toBe(401)
  expect(await setRole(developer, developer.userId, 'admin')).toBe(401)
  const json = { email: 'new-owner@example.com', role: 'owner' }
  expect((await admin.send('POST', '/v1/invitations', { json })).status).toBe(401)
})

test('members who are admins neither change nor remove an owner, nor take back the invitation of one', async () => {
  const [owner, admin] = [await signUp(service), await signUp(service, { role: 'admin' })]
  expect(await setRole(admin, owner.userId, 'viewer')).toBe(401)
  expect((await admin.send('DELETE', `/v1/members/${owner.userId}`)).status).toBe(401)
  const json = { email: 'next-owner@example.com', role: 'owner' }
  const { body } = await owner.send('POST', '/v1/invitations', { json })
  const path = `/v1/invitations/${Object(body).id}`
  expect((await admin.send('DELETE', path)).status).toBe(401)
  expect((await owner.send('DELETE', path)).status).toBe(204)
})

test('members who are admins do not replace the invitation of an owner', async () => {
  const [owner, admin] = [await signUp(service), await signUp(service, { role: 'admin' })]
  const email = 'awaited-owner@example.com'
  const made = await owner.send('POST', '/v1/invitations', { json: { email, role: 'owner' } })
  const replacing = await admin.send('POST', '/v1/invitations', { json: { email, role: 'viewer' } })
  expect(replacing.status).toBe(401)
  expect((await owner.send('DELETE', `/v1/invitations/${Object(made.body).id}`)).status).toBe(204)
})

test('members have 200 open invitations at most, of which an expired one is none', async () => {
  const owner = await signUp(service, { accountId: otherAccountId })
  const { db } = service.database
  const inviteOne = (name: string) =>
    owner.send('POST', '/v1/invitations', { json: { email: `${name}@example.com`, role: 'viewer' } })
  expect((await inviteOne('crowd')).status).toBe(201)
  await sql`
      INSERT INTO user_links (id, kind, token_hash, account_id, user_id, email, role, created_by, created_at, expires_at)
      SELECT id || n, kind, sha256(n::text::bytea), account_id, user_id, n || email, role, created_by, created_at, expires_at
      FROM user_links, generate_series(1, 199) n WHERE email = 'crowd@example.com'
    `.execute(db)
  expect(await inviteOne('one-more')).toMatchObject({ status: 409, body: { error: { code: 'conflict' } } })
  // A replaced one makes room for the new one.
  expect((await inviteOne('crowd')).status).toBe(201)
  await db
    .updateTable('user_links')
    .set({ expires_at: service.clock.now() })
    .where('email', '=', '1crowd@example.com')
    .execute()
  expect((await inviteOne('one-more')).status).toBe(201)
  await db.deleteFrom('user_links').where('account_id', '=', otherAccountId).execute()
})

test('members have their new role from the next request on', async () => {
  const [owner, person] = [await signUp(service), await signUp(service, { role: 'viewer' })]
  const make = () => person.send('POST', '/v1/audiences', { json: { name: 'List' } }).then(({ status }) => status)
  expect(await make()).toBe(401)
  expect(await setRole(owner, person.userId, 'marketer')).toBe(200)
  expect(await make()).toBe(201)
})

test('members of another account are not there, whatever id is tried', async () => {
  const [owner, theirs] = [await signUp(service), await signUp(service, { accountId: otherAccountId })]
  expect(await setRole(owner, theirs.userId, 'viewer')).toBe(404)
  expect((await owner.send('DELETE', `/v1/members/${theirs.userId}`)).status).toBe(404)
  expect(await setRole(owner, theirs.userId, 'viewer', otherAccountId)).toBe(404)
  const invited = await theirs.send('POST', '/v1/invitations', { json: { email: 'a@example.com', role: 'viewer' } })
  const path = `/v1/invitations/${Object(invited.body).id}`
  expect((await owner.send('DELETE', path)).status).toBe(404)
  expect((await theirs.send('DELETE', path)).status).toBe(204)
})

test('members always have an owner among them, also when the last two leave at once', async () => {
  const [first, second] = [
    await signUp(service, { accountId: otherAccountId }),
    await signUp(service, { accountId: otherAccountId }),
  ]
  await service.database.db
    .deleteFrom('memberships')
    .where('account_id', '=', otherAccountId)
    .where('user_id', 'not in', [first.userId, second.userId])
    .execute()
  const leave = (person: Person) => person.send('DELETE', `/v1/members/${person.userId}`)
  const { db } = service.database
  // Neither is gone before the other has asked.
  const leaving = await db.transaction().execute(async (trx) => {
    await trx.selectFrom('memberships').selectAll().where('account_id', '=', otherAccountId).forUpdate().execute()
    const answers = [leave(first), leave(second)]
    await untilSessionsWait(db, 2)
    return { answers }
  })
  const answers = await Promise.all(leaving.answers)
  expect(answers.map(({ status }) => status).toSorted()).toEqual([204, 422])
  const stayed = answers[0]?.status === 422 ? first : second
  expect(await setRole(stayed, stayed.userId, 'viewer')).toBe(422)
})

test('members are listed page by page, each once', async () => {
  const owner = await signUp(service)
  const seen: string[] = []
  for (let cursor: string | null = null; ; ) {
    const query: string = cursor === null ? '' : `&cursor=${cursor}`
    const { body } = await owner.send('GET', `/v1/members?limit=3${query}`)
    const page = Object(body)
    seen.push(...page.data.map(({ userId }: { userId: string }) => userId))
    cursor = page.nextCursor
    if (cursor === null) break
  }
  expect(seen).toContain(owner.userId)
  expect(new Set(seen).size).toBe(seen.length)
})

test('members leave a trace of an invitation that a newer one replaces', async () => {
  const owner = await signUp(service)
  const json = { email: 'twice@example.com', role: 'viewer' }
  const first = await owner.send('POST', '/v1/invitations', { json })
  await owner.send('POST', '/v1/invitations', { json })
  const rows = await service.database.db
    .selectFrom('audit_log')
    .select(['action', 'actor_id'])
    .where('account_id', '=', service.accountId)
    .where('target_id', '=', Object(first.body).id)
    .orderBy('id')
    .execute()
  expect(rows.map(({ action, actor_id }) => [action, actor_id])).toEqual([
    ['member.invited', owner.userId],
    ['invitation.deleted', owner.userId],
  ])
})

test('members leave a trace in the audit log of each change', async () => {
  const [owner, person] = [await signUp(service), await signUp(service, { role: 'viewer' })]
  await setRole(owner, person.userId, 'developer')
  await owner.send('DELETE', `/v1/members/${person.userId}`)
  const rows = await service.database.db
    .selectFrom('audit_log')
    .select(['action', 'actor_id'])
    .where('account_id', '=', service.accountId)
    .where('target_id', '=', person.userId)
    .orderBy('id')
    .execute()
  expect(rows.map(({ action, actor_id }) => [action, actor_id])).toEqual([
    ['member.joined', person.userId],
    ['session.signed_in', person.userId],
    ['member.role_changed', owner.userId],
    ['member.removed', owner.userId],
  ])
})
