import { expect, test } from 'vitest'
import { welcome, welcomeWorker } from '../../server/welcome.ts'

const url = 'http://127.0.0.1:3000'
const usual = { first: null, nobodySignsIn: false }
const closed = { allowPrivateNetworks: false }
const relay = { host: 'relay.example', port: 587, credentials: { user: 'me', password: 'secret' } }

test.each([
  ['capture', 'No email leaves this machine: it is captured, and shown at http://127.0.0.1:3000/captured'],
  ['direct', 'Email goes straight to the mail servers of its recipients'],
  ['relay', 'Email leaves over the relay relay.example:587'],
] as const)('a service with %s says how email leaves, and no password', (transport, told) => {
  const mail = { transport, relay, hostname: 'mail.example.com' }
  const [listening, leaving, ...more] = welcome(url, usual, { mail, webhooks: closed }).split('\n')
  expect(listening).toBe(
    'Postern listens on http://127.0.0.1:3000, with its documentation at http://127.0.0.1:3000/docs',
  )
  expect([leaving, ...more]).toEqual([told, ''])
})

test('a process that only works says so', () => {
  const mail = { transport: 'relay', relay, hostname: 'mail.example.com' } as const
  expect(welcomeWorker(url, { mail, webhooks: closed })).toBe(
    'Postern works, and answers http://127.0.0.1:3000/readyz and http://127.0.0.1:3000/metrics\nEmail leaves over the relay relay.example:587\n',
  )
})

test('a name without a dot is told of where records of domains lead to it, and what it breaks', () => {
  const told = (transport: 'capture' | 'relay') =>
    welcome(url, usual, { mail: { transport, relay, hostname: 'vm' }, webhooks: closed })
  const fault =
    /^Email leaves over .*\nThe service calls itself "vm", which has no dot: no sending domain can be verified.* set MAIL_HOSTNAME to .*\n$/m
  expect(told('relay')).toMatch(fault)
  const mail = { transport: 'relay', relay, hostname: 'vm' } as const
  expect(welcomeWorker(url, { mail, webhooks: closed })).toMatch(fault)
  expect(told('capture')).not.toContain('MAIL_HOSTNAME')
})

test('a service whose webhooks may lead to private networks says so', () => {
  const mail = { transport: 'capture', relay, hostname: 'vm' } as const
  const line = /^Webhooks may lead to this machine and to private networks \(WEBHOOK_ALLOW_PRIVATE_NETWORKS\)\n/m
  for (const tell of [
    (webhooks: typeof closed) => welcome(url, usual, { mail, webhooks }),
    (webhooks: typeof closed) => welcomeWorker(url, { mail, webhooks }),
  ]) {
    expect(tell({ allowPrivateNetworks: true })).toMatch(line)
    expect(tell(closed)).not.toMatch(line)
  }
})

test('the first start shows the link for the first user before the keys', () => {
  const mail = { transport: 'capture', relay, hostname: 'vm' } as const
  const first = { test: 'postern_test_x', live: 'postern_live_x', userLink: `${url}/app/accept#token=x` }
  const told = welcome(url, { first, nobodySignsIn: false }, { mail, webhooks: closed })
  const places = [first.userLink, first.test, first.live].map((secret) => told.indexOf(secret))
  expect(places).toEqual(places.toSorted((a, b) => a - b))
  expect(places).not.toContain(-1)
})

test('a later start says how to let somebody in when nobody can sign in yet', () => {
  const mail = { transport: 'capture', relay, hostname: 'vm' } as const
  const told = (nobodySignsIn: boolean) => welcome(url, { first: null, nobodySignsIn }, { mail, webhooks: closed })
  expect(told(true)).toContain('postern -- users invite')
  expect(told(false)).not.toContain('invite')
})
