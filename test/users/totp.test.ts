import { expect, test } from 'vitest'
import { matchingStep, newRecoveryCodes, newTotpSecret, stepAt, totpCode, totpUri } from '../../server/users/totp.ts'

/** The ASCII text `12345678901234567890`, the secret of the test vectors. Source: RFC 6238 appendix B. */
const secret = 'GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ'

function at(seconds: number): Date {
  return new Date(seconds * 1000)
}

test.each([
  [59, '287082'],
  [1_111_111_109, '081804'],
  [1_111_111_111, '050471'],
  [1_234_567_890, '005924'],
  [2_000_000_000, '279037'],
  [20_000_000_000, '353130'],
])('the code at second %i is the last six digits of the test vector of RFC 6238', (seconds, code) => {
  expect(totpCode(secret, stepAt(at(seconds)))).toBe(code)
})

test('a code counts in its own step and one step around it, and at no other time', () => {
  const code = totpCode(secret, 100)
  const steps = [97, 98, 99, 100, 101, 102, 103].map((step) =>
    matchingStep(secret, { code, at: at(step * 30), lastStep: null }),
  )
  expect(steps).toEqual([null, null, 100, 100, 100, null, null])
})

test('a code does not count again, nor one of an earlier step', () => {
  const match = (step: number) =>
    matchingStep(secret, { code: totpCode(secret, step), at: at(100 * 30), lastStep: 100 })
  expect([match(99), match(100), match(101)]).toEqual([null, null, 101])
})

test.each(['', '12345', '1234567', 'abcdef', '٠٨١٨٠٤'])('%j is no code', (code) => {
  expect(matchingStep(secret, { code, at: at(1_111_111_109), lastStep: null })).toBeNull()
})

test('a code may be typed with a space', () => {
  expect(matchingStep(secret, { code: '081 804', at: at(1_111_111_109), lastStep: null })).not.toBeNull()
})

test('each secret is new, has 160 bits and can be read by authenticator apps', () => {
  const secrets = Array.from({ length: 20 }, newTotpSecret)
  expect(new Set(secrets).size).toBe(20)
  for (const one of secrets) expect(one).toMatch(/^[A-Z2-7]{32}$/)
})

test('the address in the URI is escaped', () => {
  const uri = totpUri({ secret, email: 'a+b&c=d@example.com', issuer: 'Postern' })
  expect(uri).toBe(`otpauth://totp/Postern:a%2Bb%26c%3Dd%40example.com?secret=${secret}&issuer=Postern`)
})

test('ten recovery codes are made, and none twice', () => {
  const codes = newRecoveryCodes()
  expect(new Set(codes).size).toBe(10)
  for (const code of codes) expect(code).toMatch(/^[a-z2-9]{4}(-[a-z2-9]{4}){3}$/)
})
