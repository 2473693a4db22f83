import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { settingsTable } from '../../server/config/settings.ts'

const text = readFileSync(new URL('../../compose.yaml', import.meta.url), 'utf8')

/** As Docker Compose does, for the forms that the file uses. */
function filledIn(env: Readonly<Record<string, string>>): string {
  return text.replace(/\$\{(\w+)(?::[-?]([^}]*))?\}/g, (_, name: string, other = '') => env[name] || other)
}

const portsOf = (yaml: string) => [...yaml.matchAll(/^ {6}- '([\d.:]+)'$/gm)].map(([, port]) => port)

test('the ports that compose.yaml passes to the service are published', () => {
  const passed = [...text.matchAll(/^ {6}(\w*_PORT): /gm)].map(([, name]) => name)
  expect(passed).toEqual(['INBOUND_SMTP_PORT'])
  expect(portsOf(filledIn({ INBOUND_SMTP_PORT: '25' }))).toEqual(['127.0.0.1:3000:3000', '25:25'])
})

/** The settings that the container itself decides. */
const ofTheContainer = ['HOST', 'PORT', 'ROLES', 'DATA_DIR', 'CAPTURE_SMTP_PORT', 'INBOUND_SMTP_HOST']

test('compose.yaml passes every setting to the service but those of the container itself', () => {
  const service = text.slice(text.indexOf('  postern:'), text.indexOf('  postgres:'))
  const passed = [...service.matchAll(/^ {6}([A-Z_]+): '(.*)'$/gm)].map(([, name = '', value]) => ({ name, value }))
  const wanted = settingsTable.map(({ name }) => name).filter((name) => !ofTheContainer.includes(name))
  expect(passed.map(({ name }) => name).toSorted()).toEqual(wanted.toSorted())
  const fromEnvironment = passed.filter(({ name }) => name !== 'DATABASE_URL')
  for (const { name, value } of fromEnvironment) expect(value).toMatch(new RegExp(`^\\$\\{${name}:[-?]`))
})

test('no port is open to others until it is chosen', () => {
  expect(portsOf(filledIn({})).every((port) => port?.startsWith('127.0.0.1:'))).toBe(true)
})
