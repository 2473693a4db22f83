import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'

/*
 * Breaks every rule of the linter that guards the architecture, in a project with a copy of its
 * configuration, and looks whether the linter says so; and that it does not where all is well.
 */

type Imports = { file: string; refused: string[]; allowed: string[] }

const features = [
  'webhooks',
  'subscribers',
  'audiences',
  'events',
  'emails',
  'suppressions',
  'domains',
  'campaigns',
  'api-keys',
]

const rooms: Imports[] = [
  {
    file: 'contract/thing.ts',
    refused: ['../server/ids.ts', '../openapi/document.ts', 'express', 'node:fs'],
    allowed: ['zod', '@ts-rest/core', './ids.ts'],
  },
  {
    file: 'openapi/thing.ts',
    refused: ['../server/ids.ts', '../test/support/app.ts', '../scripts/demo.ts', 'express'],
    allowed: ['../contract/index.ts', 'openapi3-ts/oas31', './document.ts'],
  },
  {
    file: 'server/thing.ts',
    refused: [
      './http/router.ts',
      './webhooks/service.ts',
      './workers.ts',
      './app.ts',
      './main.ts',
      'express',
      'pg-boss',
    ],
    allowed: ['./ids.ts', '../contract/ids.ts', './database/connection.ts', 'node:fs'],
  },
  {
    file: 'server/tracing/thing.ts',
    refused: [
      '../database/connection.ts',
      '../queue/queue.ts',
      '../delivery/worker.ts',
      '../http/router.ts',
      'express',
    ],
    allowed: ['./tracer.ts', '@opentelemetry/api', '@opentelemetry/sdk-trace', 'node:async_hooks'],
  },
  {
    file: 'server/network/thing.ts',
    refused: [
      '../database/connection.ts',
      '../queue/queue.ts',
      '../delivery/worker.ts',
      '../mail/worker.ts',
      '../webhooks/service.ts',
      '../http/router.ts',
      'express',
    ],
    allowed: ['./public-address.ts', '../errno.ts', 'ipaddr.js', 'node:net'],
  },
  {
    file: 'server/database/thing.ts',
    refused: [
      '../queue/queue.ts',
      '../outbox/append.ts',
      '../delivery/worker.ts',
      '../webhooks/service.ts',
      '../app.ts',
    ],
    allowed: ['./connection.ts', '../errors.ts', 'pg'],
  },
  {
    file: 'server/database/tables/thing.ts',
    refused: ['../../queue/queue.ts', '../../http/router.ts', 'express', 'pg-boss', 'node:process'],
    allowed: ['./events.ts', 'kysely'],
  },
  {
    file: 'server/queue/thing.ts',
    refused: [
      '../outbox/append.ts',
      '../delivery/worker.ts',
      '../mail/worker.ts',
      '../webhooks/service.ts',
      '../http/router.ts',
      'express',
    ],
    allowed: ['../database/connection.ts', 'pg-boss'],
  },
  ...['outbox', 'delivery', 'mail'].map((room) => ({
    file: `server/${room}/thing.ts`,
    refused: ['../webhooks/service.ts', '../http/router.ts', '../workers.ts', '../app.ts', 'express', 'pg-boss'],
    allowed: ['../queue/queue.ts', '../database/connection.ts', './queries.ts'],
  })),
  ...features.map((feature) => ({
    file: `server/${feature}/thing.ts`,
    refused: ['../people/queries.ts', '../http/router.ts', '../workers.ts', '../app.ts', 'express', 'pg-boss'],
    allowed: ['./queries.ts', '../people/service.ts', '../outbox/append.ts', '../delivery/service.ts'],
  })),
  {
    file: 'server/http/routes/thing.ts',
    refused: ['../../webhooks/queries.ts', '../../workers.ts', '../../app.ts', '../../cli/postern.ts', 'pg-boss'],
    allowed: ['../../webhooks/service.ts', '../errors.ts', 'express', '@ts-rest/express'],
  },
  {
    file: 'server/workers.ts',
    refused: ['./http/router.ts', './app.ts', './main.ts', './webhooks/queries.ts', 'express', 'pg-boss'],
    allowed: ['./delivery/worker.ts', './outbox/fan-out.ts', './webhooks/service.ts'],
  },
  {
    file: 'server/app.ts',
    refused: ['./main.ts', './cli/postern.ts', 'express', 'pg-boss', '../test/support/app.ts', '../scripts/demo.ts'],
    allowed: ['./http/router.ts', './workers.ts', './database/connection.ts', './webhooks/service.ts'],
  },
  {
    file: 'server/main.ts',
    refused: ['express', 'pg-boss', 'node:process', '../test/support/app.ts', '../scripts/demo.ts'],
    allowed: ['./app.ts', './config.ts'],
  },
  { file: 'scripts/thing.ts', refused: ['../test/support/app.ts', 'express'], allowed: ['../server/app.ts'] },
  { file: 'test/thing.ts', refused: [], allowed: ['express', '../server/app.ts'] },
]

type Misdeed = { rule: string; file: string; source: string }

const room = 'server/database'
const untraced = ['network', 'database', 'queue', 'outbox', 'delivery', 'mail', 'webhooks', 'http', 'cli', 'workers']
const misdeeds: Misdeed[] = [
  { rule: 'style/noRestrictedImports', file: `${room}/type.ts`, source: "import type { Q } from '../queue/queue.ts'" },
  { rule: 'style/noRestrictedImports', file: `${room}/from.ts`, source: "export { q } from '../queue/queue.ts'" },
  {
    rule: 'style/noRestrictedImports',
    file: `${room}/late.ts`,
    source: "export const q = import('../queue/queue.ts')",
  },
  ...[
    ...untraced.map((name) => `server/${name}/traced.ts`),
    'server/app.ts',
    'server/traced.ts',
    'scripts/traced.ts',
  ].map((file) => ({ rule: 'style/noRestrictedImports', file, source: "import '@opentelemetry/api'" })),
  { rule: 'suspicious/noImportCycles', file: 'server/ring.ts', source: "import './ring-back.ts'" },
  { rule: 'suspicious/noImportCycles', file: 'server/ring-back.ts', source: "import './ring.ts'" },
  { rule: 'style/noProcessEnv', file: 'server/main.ts', source: 'export const port = process.env.PORT' },
  { rule: 'nursery/noFloatingPromises', file: 'server/floating.ts', source: 'Promise.resolve(1)' },
  { rule: 'style/noDefaultExport', file: 'server/default.ts', source: 'export default 1' },
  { rule: 'suspicious/noExplicitAny', file: 'server/any.ts', source: 'export const a: any = 1' },
  { rule: 'suspicious/noConsole', file: 'server/console.ts', source: "console.log('a')" },
  { rule: 'style/useNodejsImportProtocol', file: 'server/protocol.ts', source: "import 'fs'" },
  { rule: 'correctness/noUndeclaredDependencies', file: 'server/undeclared.ts', source: "import 'lodash'" },
  { rule: 'correctness/useImportExtensions', file: 'server/extension.ts', source: "import './any'" },
  { rule: 'style/useFilenamingConvention', file: 'server/camelCase.ts', source: 'export const a = 1' },
]

const innocent: Misdeed[] = [
  { rule: 'suspicious/noConsole', file: 'server/cli/postern.ts', source: "console.log('a')" },
  { rule: 'style/noProcessEnv', file: 'server/config.ts', source: 'export const port = process.env.PORT' },
]

const importLine = (specifier: string) => `import '${specifier}'`

const report = z.object({
  diagnostics: z.array(
    z.object({ category: z.string(), location: z.object({ path: z.string(), start: z.object({ line: z.int() }) }) }),
  ),
})
type Finding = { rule: string; file: string; line: number }

function lint(directory: string): Promise<Finding[]> {
  const biome = resolve('node_modules/.bin/biome')
  const args = ['lint', '--reporter=json', '--max-diagnostics=none']
  return new Promise((found, failed) => {
    // It exits with 1 because there are findings; what counts is the report.
    execFile(biome, args, { cwd: directory, maxBuffer: 2 ** 26 }, (_, stdout, stderr) => {
      if (stdout === '') return failed(new Error(`biome said: ${stderr}`))
      const { diagnostics } = report.parse(JSON.parse(stdout))
      found(
        diagnostics.map(({ category, location: { path, start } }) => ({
          rule: category.replace('lint/', ''),
          file: path,
          line: start.line,
        })),
      )
    })
  })
}

async function writeProject(directory: string): Promise<void> {
  const sources = new Map<string, string[]>()
  for (const { file, refused, allowed } of rooms) sources.set(file, [...refused, ...allowed].map(importLine))
  for (const { file, source } of [...misdeeds, ...innocent]) {
    sources.set(file, [...(sources.get(file) ?? []), source])
  }
  for (const [file, lines] of sources) {
    await mkdir(dirname(join(directory, file)), { recursive: true })
    await writeFile(join(directory, file), `${lines.join('\n')}\n`)
  }
  const { vcs: _, ...configuration } = z.looseObject({}).parse(JSON.parse(await readFile('biome.json', 'utf8')))
  await writeFile(join(directory, 'biome.json'), JSON.stringify(configuration))
  await cp('package.json', join(directory, 'package.json'))
}

let directory: string
let findings: Finding[]

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'postern-lint-'))
  await writeProject(directory)
  findings = await lint(directory)
})

afterAll(() => rm(directory, { recursive: true }))

describe.each(rooms)('$file', ({ file, refused, allowed }) => {
  const linesFound = () =>
    findings.filter((finding) => finding.file === file && finding.rule === 'style/noRestrictedImports')

  test(`may not import ${refused.join(', ') || 'nothing'}`, () => {
    const lines = new Set(linesFound().map(({ line }) => line))
    expect(refused.filter((_, index) => !lines.has(index + 1))).toEqual([])
  })

  test(`may import ${allowed.join(', ')}`, () => {
    const lines = new Set(linesFound().map(({ line }) => line))
    expect(allowed.filter((_, index) => lines.has(refused.length + index + 1))).toEqual([])
  })
})

test.each(misdeeds)('$rule finds `$source` in $file', ({ rule, file }) => {
  expect(findings).toContainEqual(expect.objectContaining({ rule, file }))
})

test.each(innocent)('$rule lets $file have `$source`', ({ rule, file }) => {
  expect(findings.filter((finding) => finding.file === file && finding.rule === rule)).toEqual([])
})

test('every room of the server has its rules', async () => {
  const entries = await readdir('server', { withFileTypes: true })
  const directories = entries.filter((entry) => entry.isDirectory()).map(({ name }) => name)
  const { overrides } = z
    .looseObject({ overrides: z.array(z.looseObject({ includes: z.array(z.string()) })) })
    .parse(JSON.parse(await readFile('biome.json', 'utf8')))
  const ruled = new Set(overrides.flatMap(({ includes }) => includes))
  expect(directories.filter((name) => !ruled.has(`server/${name}/**`))).toEqual([])
})
