import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { anchorOf } from '../../docs/.vitepress/pages.ts'
import { settingsTable } from '../../server/config/settings.ts'
import { type Document, headingsOf, proseOf, readDocument, readPages, root } from './document.ts'

/* Files and sections that the README, CONTRIBUTING and the pages below docs/ refer to exist. */

const { scripts } = z
  .object({ scripts: z.record(z.string(), z.string()) })
  .parse(JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')))

/** Variables that are no settings of the service, with the file that reads them or tells of them. */
const otherVariables: Readonly<Record<string, string>> = {
  TEST_DATABASE_URL: 'test/support/global-setup.ts',
  TEST_COSTS: 'test/support/cost-reporter.ts',
  FAULT_SEED: 'test/fault/support/seeded-random.ts',
  CI_REQUIRE: 'scripts/support/optional-tool.ts',
  POSTGRES_PASSWORD: 'compose.yaml',
  WEBHOOK_SECRET: 'README.md',
  // Columns in exports of Mailchimp.
  UNSUB_TIME: 'contract/import-files.ts',
  CLEAN_TIME: 'contract/import-files.ts',
  // Of versions before: the start says what has replaced them.
  DELIVERY_CONCURRENCY: 'server/config/config.ts',
  WEBHOOK_CONCURRENCY: 'server/config/config.ts',
}

function targetsOf(text: string): string[] {
  return [...proseOf(text).matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = '']) => target)
}

function isThere(from: string, target: string): boolean {
  const [path = '', anchor] = target.split('#')
  const file = path === '' ? join(root, from) : join(root, dirname(from), path)
  if (!existsSync(file)) return false
  return anchor === undefined || headingsOf(readFileSync(file, 'utf8')).some(({ title }) => anchorOf(title) === anchor)
}

function linksOf({ text }: Document): string[] {
  return targetsOf(text).filter((target) => !target.startsWith('https://'))
}

/** The scripts in `npm run …`, `npm test` and `npm start`. */
function scriptsOf({ text }: Document): string[] {
  return [...text.matchAll(/\bnpm (?:run (?:--silent )?([a-z:]+)|(test|start)\b)/g)].map(
    ([, run, short]) => run ?? short ?? '',
  )
}

const documents = [...readPages(), readDocument('CONTRIBUTING.md')]

describe.each(documents)('$name', (document) => {
  const { name, text } = document

  test('a document links to what is there', () => {
    expect(linksOf(document).filter((target) => !isThere(name, target))).toEqual([])
  })

  test('a document names npm scripts that exist', () => {
    expect(scriptsOf(document).filter((script) => !(script in scripts))).toEqual([])
  })

  test('a document names settings that exist', () => {
    const settings = settingsTable.map((setting) => setting.name)
    const named = new Set(text.match(/\b[A-Z]+(?:_[A-Z]+)+\b/g))
    const unknown = [...named].filter((variable) => !settings.includes(variable) && !(variable in otherVariables))
    expect(unknown).toEqual([])
  })
})

test.each(['README.md', 'CONTRIBUTING.md'])('%s has links and npm scripts to check', (name) => {
  const document = readDocument(name)
  expect(linksOf(document).length).toBeGreaterThan(10)
  expect(scriptsOf(document).length).toBeGreaterThan(3)
})

test('the README has at most 200 lines', () => {
  expect(readDocument('README.md').text.trimEnd().split('\n').length).toBeLessThanOrEqual(200)
})

test.each(readPages())('$name is wrapped at 120 characters', ({ text }) => {
  const lines = proseOf(text).split('\n')
  expect(lines.filter((line) => [...line].length > 120 && !line.startsWith('|'))).toEqual([])
})

test('the links of all documents are found', () => {
  expect(documents.flatMap(linksOf).length).toBeGreaterThan(100)
})

test.each(Object.entries(otherVariables))('%s is known to %s', (variable, file) => {
  expect(readFileSync(join(root, file), 'utf8')).toContain(variable)
})
