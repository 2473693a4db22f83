import { type AppRoute, type AppRouter, isAppRoute } from '@ts-rest/core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { contract } from '../../contract/index.ts'
import { rolePermissions, roles } from '../../contract/roles.ts'
import type { RouteMetadata } from '../../contract/route.ts'
import { createFixtures, type Fixtures, pathOf, unknownParameters } from '../support/fixtures.ts'
import { type Person, signUp } from '../support/people.ts'
import { keyOperations, type Operation, operations } from '../support/published-spec.ts'
import { startTestService, type TestService } from '../support/service.ts'

/*
 * Each role × each route, and each route × somebody of another account: all routes of the contract serve sessions too.
 */

let service: TestService
let fixtures: Fixtures
const people = new Map<string, Person>()
let stranger: Person

beforeAll(async () => {
  service = await startTestService({ roles: { worker: false } })
  fixtures = createFixtures(service)
  for (const role of roles) people.set(role, await signUp(service, { role }))
  const accounts = await service.database.db.selectFrom('accounts').select('id').where('name', '=', 'Theirs').execute()
  stranger = await signUp(service, { accountId: accounts[0]?.id ?? '' })
})
afterAll(() => service.stop())

function metadataOf(router: AppRouter): RouteMetadata[] {
  const entries: (AppRoute | AppRouter)[] = Object.values(router)
  return entries.flatMap((entry) => (isAppRoute(entry) ? [entry.metadata as RouteMetadata] : metadataOf(entry)))
}
const permissionOf = new Map(metadataOf(contract).map(({ operationId, permission }) => [operationId, permission]))

const inAccount = operations.filter(({ permission }) => permission !== null)
const table = inAccount.flatMap((operation) => roles.map((role) => [role, operation.id, operation] as const))

/** Calls an operation on what is not there: who may call it is decided before that is found out. */
function call(person: Person, operation: Operation, options: { accountId?: string; path?: string } = {}) {
  const { path = pathOf(operation, unknownParameters(operation)), ...rest } = options
  const json = operation.body === null ? {} : { json: { unexpected: 1 } }
  return person.send(operation.method, path, { ...json, ...rest })
}

test.each(table)('%s: %s is allowed exactly when the role has its permission', async (role, id, operation) => {
  const person = people.get(role) ?? expect.fail('nobody has this role')
  const permission = permissionOf.get(id) ?? expect.fail('the route has no permission')
  const { status, body } = await call(person, operation)
  const held: readonly string[] = rolePermissions[role]
  expect(status === 401).toBe(!held.includes(permission))
  if (status === 401) expect(Object(body).error.message).toContain(`lacks the permission "${permission}"`)
})

test.each(inAccount.map((operation) => [operation.id, operation] as const))(
  '%s finds no account for a user who is no member of it',
  async (_, operation) => {
    const { status, body } = await call(stranger, operation, { accountId: service.accountId })
    expect([status, Object(body).error?.code]).toEqual([404, 'not_found'])
  },
)

const onOne = keyOperations.filter(({ parameters }) => parameters.path.length > 0)
test.each(onOne.map((operation) => [operation.id, operation] as const))(
  '%s finds nothing of an account in the own account of a user who is no member of it',
  async (_, operation) => {
    const path = pathOf(operation, await fixtures.parametersFor(operation))
    const json = operation.body === null ? {} : { json: fixtures.bodyFor(operation) }
    const { status, body } = await stranger.send(operation.method, path, json)
    expect([status, Object(body).error?.code]).toEqual([404, 'not_found'])
  },
)
