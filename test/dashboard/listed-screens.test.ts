import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { contract } from '../../contract/index.ts'
import { routesOf } from '../../openapi/routes.ts'
import { type HostileAccount, hostileScreens } from '../support/hostile-account.ts'
import { type Made, none } from '../support/screen.ts'
import { screensOf } from '../support/screens.ts'

/*
 * Each role tries what the list of screens names: a screen or a call that is not in it is tried by none. The same holds
 * for the list that is searched for script, for what axe finds and for what another account sees.
 */

const dashboard = join(import.meta.dirname, '../../server/dashboard')
const made = new Proxy({}, { get: () => none })
const listed = screensOf(made as Made)

/** A path as parts, with `*` for what differs from one object to the other. */
const shapeOf = (path: string) =>
  path.replaceAll(/\/(?:[:$]\w+|\{\w+\}|none(?:@example\.com)?|0|email\.clicked)(?=\/|$)/g, '/*')

const router = readFileSync(join(dashboard, 'router.tsx'), 'utf8')
const paths = [...router.matchAll(/^ {2}screen\(\s*'([^']+)'/gm)].map(([, path = '']) => shapeOf(path)).toSorted()

test('each screen of an account is in the list that the roles are tried with', () => {
  expect(paths.length).toBeGreaterThan(40)
  expect(listed.map(({ path }) => shapeOf(path)).toSorted()).toEqual(paths)
})

test('each screen of an account is in the list that is searched for script, with everything on it', () => {
  const searched = new Set(hostileScreens(made as HostileAccount).map(shapeOf))
  expect([...searched].toSorted()).toEqual(paths)
})

test('each operation that the screens call is in it, with the permission that it needs', () => {
  const needed = new Map(
    routesOf(contract).map(({ method, path, metadata }) => [
      `${method.toUpperCase()} ${shapeOf(path)}`,
      metadata.permission,
    ]),
  )
  const named = globSync('screens/**/*.ts*', { cwd: dashboard }).flatMap((file) =>
    [...readFileSync(join(dashboard, file), 'utf8').matchAll(/'((?:GET|POST|PATCH|PUT|DELETE) \/v1\/[^']+)'/g)].map(
      ([, operation = '']) => shapeOf(operation),
    ),
  )
  const called = [...new Set(named)].flatMap((operation) => {
    const permission = needed.get(operation)
    if (permission === undefined) throw new Error(`there is no operation "${operation}"`)
    return permission === null ? [] : [[operation, permission]]
  })
  const tried = new Map(listed.flatMap(({ calls }) => calls).map(([call, permission]) => [shapeOf(call), permission]))
  expect(called.length).toBeGreaterThan(50)
  expect(called.filter(([operation, permission]) => tried.get(operation ?? '') !== permission)).toEqual([])
})
