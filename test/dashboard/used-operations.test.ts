import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { contract } from '../../contract/index.ts'
import { routesOf } from '../../openapi/routes.ts'

/*
 * Each operation of the API needs a screen that uses it, or a reason here. A screen need not offer each of its fields:
 * docs/guides/dashboard.md names some that only the API has.
 */

const dashboard = join(import.meta.dirname, '../../server/dashboard')

/** The operations that no screen uses, by their method and path, each with the reason. */
const withoutScreen: Readonly<Record<string, string>> = {
  'POST /v1/emails/batch': 'for programs: a person sends one email, or a campaign',
  'POST /v1/audiences/*/contacts/batch': 'for programs: a person adds one contact, or imports a file',
  'GET /v1/audiences/*/contacts/*': 'the list has all of a contact',
  'GET /v1/segments/*/count': 'the editor counts by POST /v1/segments/preview, which takes what is not saved too',
  'GET /v1/suppressions/*': 'GET /v1/suppressions with `address` returns it, and no error for one that is not there',
  'GET /v1/topics/*': 'the list has all of a topic',
  'GET /v1/api-keys/*': 'the list has all of a key',
}

/** Returns the operations that a source calls, with `*` for each parameter of the path. */
function operationsIn(source: string): string[] {
  const code = source.replaceAll(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, '')
  // Not those that a type or a key of the cache names.
  const calls = code.matchAll(/(?:\(|operation(?:=|: | = ))\s*['"]([A-Z]+) (\/v1\/[^'"]+)['"]/gi)
  // What is downloaded, uploaded or streamed is asked for by its path. Not that of a link.
  const paths = code.matchAll(
    /(?:\bopen\('([A-Z]+)', |\bfetch\(|\bdownloadFile\([^`'"]*,\s*|\bpath(?: = |=\{?))[`'"](\/v1\/[^`'"?\s]*)/g,
  )
  return [...calls, ...paths].map(([, method = 'GET', path = '']) => {
    const shape = path.replaceAll(/\/(?::\w+|\$\{\w+\})/g, '/*').replaceAll(/\$\{\w+\}/g, '')
    return `${method} ${shape}`
  })
}

test('each operation of the API is used by a screen, or the table says why by none', () => {
  const operations = routesOf(contract).map(
    ({ method, path }) => `${method.toUpperCase()} ${path.replaceAll(/\{\w+\}/g, '*')}`,
  )
  const sources = globSync('**/*.{ts,tsx}', { cwd: dashboard }).map((file) =>
    readFileSync(join(dashboard, file), 'utf8'),
  )
  const used = new Set(sources.flatMap(operationsIn))
  expect(used.size).toBeGreaterThan(100)
  expect([...used].filter((operation) => !operations.includes(operation))).toEqual([])
  expect(operations.filter((operation) => !used.has(operation)).toSorted()).toEqual(
    Object.keys(withoutScreen).toSorted(),
  )
})

test.each([
  ["useGet(\n  'GET /v1/topics/:id', { params: { id } })", 'GET /v1/topics/*'],
  ['<DeleteByName operation="DELETE /v1/topics/:id" />', 'DELETE /v1/topics/*'],
  ["{ fileOperation: 'GET /v1/emails/:id/attachments/:index' }", 'GET /v1/emails/*/attachments/*'],
  [`downloadFile(scope, \`/v1/imports/\${id}/failed-rows\`, 'rows.csv')`, 'GET /v1/imports/*/failed-rows'],
  [
    `<DownloadButton label='Export' path={\`/v1/audiences/\${id}/contacts/export\`} />`,
    'GET /v1/audiences/*/contacts/export',
  ],
  [`const label = 'Export', path = \`/v1/segments/\${id}/contacts/export\``, 'GET /v1/segments/*/contacts/export'],
  [`request.open('POST', \`/v1/imports?\${query}\`)`, 'POST /v1/imports'],
  [`fetch(\`/v1/events/stream\${query}\`, { mode: 'cors' })`, 'GET /v1/events/stream'],
])('a source with %s uses %s', (source, operation) => {
  expect(operationsIn(source)).toEqual([operation])
})

test.each([
  ["Result<'GET /v1/topics/:id'>"],
  ["queryKey: [accountId, mode, 'GET /v1/topics/:id']"],
  ["const ofState = ['GET /v1/topics/:id'] as const"],
  ["/** Such as `/v1/topics/top_1`, or call('GET /v1/topics/:id'). */"],
  ["  // It was call('GET /v1/topics/:id')."],
  ['<Code>GET /v1/topics/:id</Code>'],
  ['<a href="/v1/topics/top_1">'],
  ["title: '/v1/topics/top_1 is gone'"],
])('a source with %s uses nothing', (source) => {
  expect(operationsIn(source)).toEqual([])
})
