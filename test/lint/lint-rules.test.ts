import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'

/*
 * Breaks every rule of the linter that guards the code, in a project with a copy of its configuration, and looks whether
 * the linter says so; and that it does not where all is well. Who may import whom is in rooms.test.ts.
 */

type Misdeed = { rule: string; file: string; source: string }

const misdeeds: Misdeed[] = [
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
  { rule: 'style/noProcessEnv', file: 'server/config/config.ts', source: 'export const port = process.env.PORT' },
]

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

test.each(misdeeds)('$rule finds `$source` in $file', ({ rule, file }) => {
  expect(findings).toContainEqual(expect.objectContaining({ rule, file }))
})

test.each(innocent)('$rule lets $file have `$source`', ({ rule, file }) => {
  expect(findings.filter((finding) => finding.file === file && finding.rule === rule)).toEqual([])
})
