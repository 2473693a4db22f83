import type { Logger } from 'pino'
import { expect, test } from 'vitest'
import { createLogger } from '../../server/observability/logging.ts'

const key = 'postern_live_4sVh9QzX2mN8bT1cK7dR5wY3'
const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwbhHTVPCGfGM='

/** A logger and what it has written. */
function recorder(level = 'info') {
  const lines: string[] = []
  const logger = createLogger({ level, destination: { write: (line) => void lines.push(line) } })
  return { logger, lines }
}

test('the log is one JSON object a line, with a readable level and time', () => {
  const { logger, lines } = recorder()

  logger.info({ webhookId: 'wh_1' }, 'first\nsecond \u001b[31m')

  expect(lines).toHaveLength(1)
  expect(lines[0]?.trimEnd().split('\n')).toHaveLength(1)
  expect(lines[0]).not.toContain('\u001b')
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({
    level: 'info',
    webhookId: 'wh_1',
    msg: 'first\nsecond \u001b[31m',
    time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
  })
})

test('the log leaves out what is below its level', () => {
  const { logger, lines } = recorder('warn')

  logger.info('unheard')

  expect(lines).toEqual([])
})

test.each<[string, (log: Logger, text: string) => void]>([
  ['a message', (log, text) => log.info(`got ${text}`)],
  ['a field', (log, text) => log.info({ deep: { er: [text] } })],
  ['a header', (log, text) => log.info({ headers: { authorization: `Bearer ${text}` } })],
  ['an error', (log, text) => log.error({ err: new Error(`no ${text}`, { cause: new Error(text) }) })],
  ['a stack alone', (log, text) => log.error(Object.assign(new Error('no'), { stack: `at ${text}` }))],
])('the log never shows a key or a secret in %s', (_, write) => {
  for (const text of [key, secret, `postgres://ada:${secret}@db:5432/postern`]) {
    const { logger, lines } = recorder()

    write(logger, text)

    expect(lines).toHaveLength(1)
    expect(() => JSON.parse(lines[0] ?? '')).not.toThrow()
    expect(lines[0]).not.toContain(key.slice(13))
    expect(lines[0]).not.toContain(secret.slice(6, 30))
    expect(lines[0]).toContain('***')
  }
})

const token = 'J9Vx2vF0c8wq1mY7rT5bN3kD6hS4gA2zPQeLuXiOoWk'
test.each([
  ['the token of a portal session', `postern_portal_${token}`],
  ['the cookie of a portal session', `__Host-postern_portal_01jqz4x7m8e5v9t2k6r3w0y1ab=postern_portal_${token}`],
  ['a link to the portal', `https://mail.example.com/portal/prs_01jqz4x7m8e5v9t2k6r3w0y1ab#code=${token}`],
  ['a link to a page', `https://mail.example.com/app/accept#token=${token}`],
  ['the cookie of a session', `__Host-postern_session=${token}`],
  ['what goes to the identity provider', `postern_provider=${token}`],
])('the log never shows %s', (_, text) => {
  const { logger, lines } = recorder()
  logger.info({ text }, text)
  expect(lines[0]).not.toContain(token)
  expect(lines[0]).toContain('***')
})

test('the log never shows the password of a URL, and keeps the rest of it', () => {
  const { logger, lines } = recorder()

  logger.error(new Error('cannot reach postgres://ada:s3cr%24t@db:5432/postern'))

  expect(lines[0]).not.toContain('s3cr')
  expect(lines[0]).toContain('postgres://ada:***@db:5432/postern')
})

test('the log never shows credentials of another kind', () => {
  const { logger, lines } = recorder()

  logger.info({ headers: { Authorization: 'Basic dXNlcjpwYXNz', other: 'bearer abcdef' }, after: 'kept' })

  expect(JSON.parse(lines[0] ?? '')).toMatchObject({
    headers: { Authorization: 'Basic ***', other: 'bearer ***' },
    after: 'kept',
  })
})
