import { describe, expect, test } from 'vitest'
import { relyingPartyOf } from '../../server/users/passkeys/relying-party.ts'

describe('the relying party of passkeys', () => {
  const listening = 'http://127.0.0.1:3000'
  test.each([
    ['https://mail.example.com', 'mail.example.com', 'https://mail.example.com', true],
    ['https://mail.example.com:8443/postern', 'mail.example.com', 'https://mail.example.com:8443', true],
    ['http://localhost:8080', 'localhost', 'http://localhost:8080', true],
    ['http://mail.example.com', 'mail.example.com', 'http://mail.example.com', false],
    ['https://192.0.2.1', '192.0.2.1', 'https://192.0.2.1', false],
    ['https://[2001:db8::1]', '[2001:db8::1]', 'https://[2001:db8::1]', false],
    ['http://127.0.0.1:3000', '127.0.0.1', 'http://127.0.0.1:3000', false],
  ])('PUBLIC_URL=%s: %s', (publicUrl, id, origin, isUsable) => {
    expect(relyingPartyOf(publicUrl, listening)).toEqual({ id, origin, isUsable })
  })

  test.each([
    ['http://127.0.0.1:3000', 'localhost', 'http://localhost:3000', true],
    ['http://[::1]:3000', 'localhost', 'http://localhost:3000', true],
    ['http://localhost:3000', 'localhost', 'http://localhost:3000', true],
    ['http://192.0.2.1:3000', '192.0.2.1', 'http://192.0.2.1:3000', false],
  ])('the relying party of passkeys without PUBLIC_URL, listening on %s: %s', (url, id, origin, isUsable) => {
    expect(relyingPartyOf(null, url)).toEqual({ id, origin, isUsable })
  })
})
