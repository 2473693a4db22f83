import { expect, test } from 'vitest'
import { safeNext } from '../../server/dashboard/screens/sign-in/safe-next.ts'

const account = '/acc_01m83q4anfe28s5ee3fetrw9wp'

test.each([
  '/captured',
  `${account}/live`,
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
  '',
  undefined,
  null,
  [`${account}/live`],
])('signing in leads to the start instead of %j', (next) => {
  expect(safeNext(next)).toBe('/')
})
