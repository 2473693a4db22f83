import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'

/*
 * Writes a project that breaks the rules of .dependency-cruiser.mjs, and looks whether `npm run rooms` says so there, and
 * of nothing else.
 */

type Imports = { file: string; refused: string[]; allowed: string[] }

const cases: Imports[] = [
  {
    file: 'contract/thing.ts',
    refused: ['server/shared/ids.ts', 'openapi/document.ts', 'express', 'node:fs'],
    allowed: ['zod', '@ts-rest/core', 'contract/ids.ts'],
  },
  {
    file: 'openapi/thing.ts',
    refused: ['server/shared/ids.ts', 'test/support/app.ts', 'scripts/demo.ts', 'express', 'pg-boss'],
    allowed: ['contract/index.ts', 'openapi3-ts/oas31', 'openapi/document.ts'],
  },
  {
    file: 'server/lib/thing.ts',
    refused: ['server/shared/ids.ts', 'contract/ids.ts', 'server/database/connection.ts', 'express', 'pg-boss'],
    allowed: ['server/lib/clock.ts', 'node:fs'],
  },
  {
    file: 'server/network/thing.ts',
    refused: ['server/database/connection.ts', 'server/http/express-app.ts', 'server/smtp/mx.ts', 'contract/ids.ts'],
    allowed: ['server/network/address.ts', 'server/lib/clock.ts', 'ipaddr.js'],
  },
  {
    file: 'server/observability/tracing/thing.ts',
    refused: ['server/database/connection.ts', 'server/queue/queue.ts', 'server/http/express-app.ts', 'express'],
    allowed: ['server/lib/clock.ts', '@opentelemetry/api', 'node:async_hooks'],
  },
  {
    file: 'server/database/tables/thing.ts',
    refused: ['server/queue/queue.ts', 'server/outbox/append.ts', 'server/webhooks/service.ts', 'node:process'],
    allowed: ['server/database/connection.ts', 'server/shared/errors.ts', 'pg'],
  },
  {
    file: 'server/queue/thing.ts',
    refused: ['server/outbox/append.ts', 'server/webhook-delivery/worker.ts', 'express'],
    allowed: ['server/database/connection.ts', 'pg-boss'],
  },
  {
    file: 'server/webhook-delivery/scheduling/thing.ts',
    refused: ['server/fan-out/worker.ts', 'server/webhooks/service.ts', 'server/deliveries/queries.ts', 'pg-boss'],
    allowed: [
      'server/outbox/append.ts',
      'server/queue/queue.ts',
      'server/webhook-delivery/load-deliveries.ts',
      'undici',
    ],
  },
  {
    file: 'server/email-delivery/thing.ts',
    refused: ['server/emails/service.ts', 'server/http/express-app.ts', 'server/background/workers.ts', 'smtp-server'],
    allowed: ['server/smtp/mx.ts', 'server/message/dkim.ts', 'server/outbox/append.ts'],
  },
  {
    file: 'server/webhooks/thing.ts',
    refused: [
      'server/deliveries/queries.ts',
      'server/emails/service.ts',
      'server/http/express-app.ts',
      'server/app.ts',
      '@opentelemetry/api',
    ],
    allowed: ['server/webhooks/queries.ts', 'server/deliveries/service.ts', 'server/outbox/append.ts'],
  },
  {
    file: 'server/http/routes/thing.ts',
    refused: ['server/webhooks/queries.ts', 'server/background/workers.ts', 'server/app.ts', 'pg-boss'],
    allowed: ['server/webhooks/service.ts', 'server/http/errors.ts', 'express', '@ts-rest/express'],
  },
  {
    file: 'server/background/thing.ts',
    refused: [
      'server/http/express-app.ts',
      'server/app.ts',
      'server/startup/api.ts',
      'server/main.ts',
      'server/webhooks/queries.ts',
      'express',
    ],
    allowed: ['server/webhook-delivery/worker.ts', 'server/fan-out/worker.ts', 'server/queue/queue.ts'],
  },
  {
    file: 'server/cli/thing.ts',
    refused: ['test/support/app.ts', 'scripts/demo.ts', 'pg-boss', 'server/api-keys/queries.ts'],
    allowed: ['server/api-keys/service.ts', 'server/config/config.ts', 'commander'],
  },
  {
    file: 'server/app.ts',
    refused: ['server/main.ts', 'server/cli/postern.ts', 'express', 'scripts/demo.ts', 'server/webhooks/queries.ts'],
    allowed: ['server/http/express-app.ts', 'server/background/workers.ts', 'server/database/connection.ts'],
  },
  {
    file: 'server/startup/thing.ts',
    refused: ['server/main.ts', 'server/app.ts', 'express', 'scripts/demo.ts', 'server/webhooks/queries.ts'],
    allowed: ['server/http/start.ts', 'server/background/start.ts', 'server/startup/context.ts'],
  },
  { file: 'server/new-room/thing.ts', refused: ['server/lib/clock.ts'], allowed: [] },
  { file: 'scripts/thing.ts', refused: ['test/support/app.ts'], allowed: ['server/app.ts', 'express'] },
]

/** How `server/database` can import the queue. */
const kinds = {
  type: (path: string) => `import type { A } from '${path}'\nexport type B = A`,
  again: (path: string) => `export { a } from '${path}'`,
  late: (path: string) => `export const a = () => import('${path}')`,
}

const isOurs = (target: string) => /^(contract|openapi|server|scripts|test)\//.test(target)

const isPackage = (target: string) => !isOurs(target) && !target.startsWith('node:')

/** As it stands in an import of `file`. */
function specifierOf(file: string, target: string): string {
  return isOurs(target) ? `${'../'.repeat(file.split('/').length - 1)}${target}` : target
}

const report = z.object({
  summary: z.object({ violations: z.array(z.object({ from: z.string(), to: z.string() })) }),
})

let directory: string
let violations: { from: string; to: string }[]

async function write(file: string, source: string): Promise<void> {
  await mkdir(dirname(join(directory, file)), { recursive: true })
  await writeFile(join(directory, file), source, { flag: 'a' })
}

async function writePackage(name: string): Promise<void> {
  const folder = join(directory, 'node_modules', name)
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, 'package.json'), JSON.stringify({ name, main: 'index.js' }))
  await writeFile(join(folder, 'index.js'), '')
}

function cruise(): Promise<typeof violations> {
  const args = ['-c', '.dependency-cruiser.mjs', 'contract', 'openapi', 'server', 'scripts', '-T', 'json']
  return new Promise((found, failed) => {
    const options = { cwd: directory, maxBuffer: 2 ** 26 }
    execFile(
      process.execPath,
      [resolve('node_modules/dependency-cruiser/bin/dependency-cruiser.mjs'), ...args],
      options,
      (_, stdout, stderr) => {
        // It exits with the number of errors; what counts is the report.
        if (stdout === '') return failed(new Error(`dependency-cruiser said: ${stderr}`))
        found(report.parse(JSON.parse(stdout)).summary.violations)
      },
    )
  })
}

/** Of the targets, those that are told of. */
function toldOf(file: string, targets: readonly string[]): string[] {
  const told = violations.filter(({ from }) => from === file).map(({ to }) => to)
  return targets.filter((target) => {
    const bare = target.replace(/^node:/, '')
    return told.some((to) => to === target || to === bare || to.startsWith(`node_modules/${target}/`))
  })
}

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'postern-rooms-'))
  for (const name of ['.dependency-cruiser.mjs', 'package.json', 'tsconfig.json']) await cp(name, join(directory, name))
  for (const { file, refused, allowed } of cases) {
    const targets = [...refused, ...allowed]
    await write(file, targets.map((target) => `import '${specifierOf(file, target)}'\n`).join(''))
    for (const target of targets.filter(isOurs)) await write(target, 'export {}\n')
    for (const name of targets.filter(isPackage)) await writePackage(name)
  }
  for (const [kind, source] of Object.entries(kinds))
    await write(`server/database/${kind}.ts`, source('../queue/queue.ts'))
  violations = await cruise()
})

afterAll(() => rm(directory, { recursive: true }))

describe.each(cases)('$file', ({ file, refused, allowed }) => {
  test(`${file} may not import ${refused.join(', ')}`, () => expect(toldOf(file, refused)).toEqual(refused))
  test(`${file} may import ${allowed.join(', ') || 'nothing'}`, () => expect(toldOf(file, allowed)).toEqual([]))
})

test.each(Object.keys(kinds))('an import of another kind counts as well: %s', (kind) => {
  const file = `server/database/${kind}.ts`
  expect(toldOf(file, ['server/queue/queue.ts'])).toEqual(['server/queue/queue.ts'])
})
