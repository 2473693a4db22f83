import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { eventTypeNames } from '../../contract/event-types.ts'
import { safeNext } from '../../server/dashboard/screens/sign-in/safe-next.ts'

const account = '/acc_01m83q4anfe28s5ee3fetrw9wp'

const router = readFileSync(new URL('../../server/dashboard/router.tsx', import.meta.url), 'utf8')

/** The paths that the router is given by a pattern, with the parameters filled in. */
function pathsOf(pattern: RegExp, parent = ''): string[] {
  const paths = [...router.matchAll(pattern)].map(([, path = '']) => `${parent}${path}`)
  return paths.flatMap((path) => {
    const filled = path.replace('/$account/$mode', `${account}/live`)
    const ids = path.endsWith('/event-types/$id') ? eventTypeNames : ['wh_01m83q4865ef6bkk1jga2z3wj5']
    return ids.map((id) => filled.replaceAll(/\$\w+/g, id))
  })
}

test('signing in leads on to each screen of the router that asks who one is', () => {
  const named = pathsOf(/^ {2}path: '(\/.*)',$/gm)
  const ofAccount = pathsOf(/^ {2}screen\(\s*'(.+)',$/gm, '/$account/$mode/')
  const ofOperator = pathsOf(/^ {2}operatorScreen\(\s*'(.+)',$/gm, '/operator/')
  // Each is in one of the lists: the two more are in the functions that make the screens of the other lists.
  expect(named).toHaveLength([...router.matchAll(/createRoute\(/g)].length - 2)
  expect(ofAccount).toHaveLength([...router.matchAll(/^ {2}screen\(/gm)].length - 1 + eventTypeNames.length)
  expect(ofOperator).toHaveLength([...router.matchAll(/^ {2}operatorScreen\(/gm)].length)

  const open = ['/sign-in', '/forgot-password', '/accept', '/provider']
  const paths = [...named, ...ofAccount, ...ofOperator].filter((path) => !open.includes(path))
  expect(paths).toContain(`${account}/live/event-types/email.clicked`)
  expect(paths.filter((path) => safeNext(path) !== path)).toEqual([])
})

test.each([
  '/captured',
  '/operator',
  '/operator/accounts?search=shop',
  `${account}/live`,
  `${account}/live/`,
  `${account}/test/emails`,
  `${account}/live/webhooks/wh_01m83q4865ef6bkk1jga2z3wj5?status=pending`,
])('signing in leads on to %s', (next) => {
  expect(safeNext(next)).toBe(next)
})

test.each([
  'https://evil.example/',
  '//evil.example/',
  '/\\evil.example/',
  'javascript:alert(1)',
  `${account}/live/../../../v1/session`,
  `${account}/live@evil.example`,
  `${account}/live\n//evil.example`,
  `//evil.example${account}/live`,
  `https://evil.example${account}/live`,
  `${account}/live/#token=x`,
  '/accept#token=x',
  '/captured/../evil',
  '/operator/../evil',
  '/operator//evil.example',
  '/operator.evil.example',
  '/operator@evil.example',
  '/operator\\evil.example',
  `${account}/live//evil.example`,
  `${account}/live/..`,
  `${account}/live/.`,
  `${account}/live/a..b`,
  `${account}/live/.hidden`,
  `${account}/live/webhooks\\..\\..`,
  `${account}/live/%2e%2e/evil`,
  '',
  undefined,
  null,
  [`${account}/live`],
])('signing in leads to the start instead of %j', (next) => {
  expect(safeNext(next)).toBe('/')
})
