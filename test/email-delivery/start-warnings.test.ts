import { expect, test } from 'vitest'
import { faultOfLinksIn } from '../../server/email-delivery/link-faults.ts'
import { type WarningOptions, warningsOf } from '../../server/email-delivery/start-warnings.ts'
import { startTestService } from '../support/service.ts'

const whole: WarningOptions = {
  transport: 'relay',
  isWorker: true,
  hasInbound: true,
  linksFault: null,
}

test.each<[string, Partial<WarningOptions>, string[]]>([
  ['nothing is missing', {}, []],
  ['email is captured', { transport: 'capture', hasInbound: false }, []],
  ['bounces cannot arrive', { hasInbound: false }, ['INBOUND_SMTP_PORT is not set']],
  [
    'bounces of direct email cannot arrive',
    { transport: 'direct', hasInbound: false },
    ['INBOUND_SMTP_PORT is not set'],
  ],
  ['another process takes what comes back', { isWorker: false, hasInbound: false }, []],
  ['links lead nowhere', { linksFault: 'PUBLIC_URL is wrong' }, ['PUBLIC_URL is wrong: ']],
  ['links of captured email lead nowhere', { transport: 'capture', linksFault: 'no PUBLIC_URL' }, ['no PUBLIC_URL: ']],
  ['both', { linksFault: 'no PUBLIC_URL', hasInbound: false }, ['PUBLIC_URL', 'INBOUND_SMTP_PORT']],
])('at the start, where %s, the operator is told so', (_name, changes, told) => {
  const warnings = warningsOf({ ...whole, ...changes })
  expect(warnings).toHaveLength(told.length)
  for (const [index, text] of told.entries()) expect(warnings[index]).toContain(text)
  for (const warning of warnings) expect(warning).toMatch(/; set \w+/)
})

const both = { api: true, worker: true }

test.each([
  ['capture', null, both, null],
  ['capture', null, { api: false, worker: true }, 'PUBLIC_URL is not set, and with ROLES'],
  ['capture', null, { api: true, worker: false }, 'PUBLIC_URL is not set, and with ROLES'],
  ['capture', 'http://127.0.0.1:3000', { api: false, worker: true }, null],
  ['relay', null, both, 'PUBLIC_URL is not set'],
  ['direct', 'http://mail.example.com', both, 'which is not https'],
  ['direct', 'https://mail.example.com', { api: false, worker: true }, null],
] as const)('where links lead: %s, PUBLIC_URL %s, %o', (transport, publicUrl, roles, fault) => {
  const found = faultOfLinksIn({ http: { publicUrl }, roles, mail: { transport } })
  if (fault === null) expect(found).toBeNull()
  else expect(found).toContain(fault)
})

test('a service with a real transport logs its warnings, and refuses what needs links', async () => {
  const relay = { host: '127.0.0.1', port: 9, tls: 'opportunistic' as const, credentials: null }
  await using service = await startTestService({ roles: { worker: false }, mail: { transport: 'relay', relay } })
  expect(service.logged.filter((line) => line.includes('PUBLIC_URL is not set'))).toHaveLength(1)
  const body = JSON.stringify({ from: 'a@b.test', to: 'c@d.test', subject: 'Hi', text: 'Hi', trackClicks: true })
  const headers = { authorization: `Bearer ${service.keys.live}`, 'content-type': 'application/json' }
  const answer = await fetch(`${service.url}/v1/emails`, { method: 'POST', headers, body })
  expect(answer.status).toBe(422)
  expect(await answer.json()).toMatchObject({ error: { code: 'public_url_needed' } })
})
