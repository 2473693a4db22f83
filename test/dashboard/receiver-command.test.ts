import { expect, test } from 'vitest'
import { isSecret, leadsHere, portOf } from '../../server/dashboard/screens/webhooks/receiver-command.ts'

test.each([
  ['http://127.0.0.1:4000/hooks', true, 4000],
  ['http://localhost:8080/', true, 8080],
  ['http://127.1.2.3/', true, 80],
  ['https://[::1]/', true, 443],
  ['https://shop.example.com/hooks', false, 4000],
  ['https://shop.example.com:8443/', false, 4000],
  ['https://127.0.0.1.example.com/', false, 4000],
])('a receiver of %s: leads to this machine: %s, port %i', (url, isHere, port) => {
  expect([leadsHere(url), portOf(url)]).toEqual([isHere, port])
})

test.each([
  ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', true],
  ['whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=', true],
  ['whsec_', false],
  ["whsec_AAAAAAAA'; rm -rf ~; '", false],
  ['whsec_AAAAAAAA\nAAAA', false],
  ['postern_live_AAAAAAAAAAAA', false],
  [`whsec_${'A'.repeat(1_000)}`, false],
])('%j is a signing secret: %s', (text, expected) => expect(isSecret(text)).toBe(expected))
