import { expect, test } from 'vitest'
import { type WarningOptions, warningsOf } from '../../server/mail/start-warnings.ts'
import { startTestService } from '../support/service.ts'

const whole: WarningOptions = {
  transport: 'relay',
  isWorker: true,
  hasInbound: true,
  publicUrl: 'https://mail.example.com',
}

test.each<[string, Partial<WarningOptions>, string[]]>([
  ['nothing is missing', {}, []],
  ['email is captured', { transport: 'capture', hasInbound: false, publicUrl: null }, []],
  ['bounces cannot arrive', { hasInbound: false }, ['INBOUND_SMTP_PORT is not set']],
  [
    'bounces of direct email cannot arrive',
    { transport: 'direct', hasInbound: false },
    ['INBOUND_SMTP_PORT is not set'],
  ],
  ['another process takes what comes back', { isWorker: false, hasInbound: false }, []],
  ['links lead nowhere', { publicUrl: null }, ['PUBLIC_URL is not set']],
  ['links are not secure', { publicUrl: 'http://mail.example.com', isWorker: false }, ['which is not https']],
  ['both', { publicUrl: null, hasInbound: false }, ['PUBLIC_URL', 'INBOUND_SMTP_PORT']],
])('at the start, where %s, the operator is told so', (_name, changes, told) => {
  const warnings = warningsOf({ ...whole, ...changes })
  expect(warnings).toHaveLength(told.length)
  for (const [index, text] of told.entries()) expect(warnings[index]).toContain(text)
  for (const warning of warnings) expect(warning).toMatch(/; set \w+/)
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
