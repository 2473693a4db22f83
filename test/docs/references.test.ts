import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { settingsTable } from '../../server/settings.ts'
import { headingsOf, proseOf, readDocument, root } from './document.ts'

/* What the README and CONTRIBUTING refer to is there. */

const { scripts } = z
  .object({ scripts: z.record(z.string(), z.string()) })
  .parse(JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')))

/** Variables that are no settings of the service, with the file that reads them or tells of them. */
const otherVariables: Readonly<Record<string, string>> = {
  TEST_DATABASE_URL: 'test/support/global-setup.ts',
  CI_REQUIRE: 'scripts/support/optional-tool.ts',
  POSTGRES_PASSWORD: 'compose.yaml',
  WEBHOOK_SECRET: 'README.md',
}

/** As GitHub makes the anchor of a heading. */
function anchorOf(title: string): string {
  return title
    .toLowerCase()
    .replaceAll(/[^\w\- ]/g, '')
    .replaceAll(' ', '-')
}

function targetsOf(text: string): string[] {
  return [...proseOf(text).matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = '']) => target)
}

function isThere(from: string, target: string): boolean {
  const [path = '', anchor] = target.split('#')
  const file = join(root, path === '' ? from : path)
  if (!existsSync(file)) return false
  return anchor === undefined || headingsOf(readFileSync(file, 'utf8')).some(({ title }) => anchorOf(title) === anchor)
}

describe.each(['README.md', 'CONTRIBUTING.md'])('%s', (name) => {
  const { text } = readDocument(name)

  test('links to what is there', () => {
    const targets = targetsOf(text).filter((target) => !target.startsWith('https://'))
    expect(targets.length).toBeGreaterThan(10)
    expect(targets.filter((target) => !isThere(name, target))).toEqual([])
  })

  test('names npm scripts that exist', () => {
    const named = [...text.matchAll(/\bnpm (?:run (?:--silent )?([a-z:]+)|(test|start)\b)/g)].map(
      ([, run, short]) => run ?? short ?? '',
    )
    expect(named.length).toBeGreaterThan(3)
    expect(named.filter((script) => !(script in scripts))).toEqual([])
  })

  test('names settings that exist', () => {
    const settings = settingsTable.map((setting) => setting.name)
    const named = new Set(text.match(/\b[A-Z]+(?:_[A-Z]+)+\b/g))
    const unknown = [...named].filter((variable) => !settings.includes(variable) && !(variable in otherVariables))
    expect(unknown).toEqual([])
  })
})

test.each(Object.entries(otherVariables))('%s is known to %s', (variable, file) => {
  expect(readFileSync(join(root, file), 'utf8')).toContain(variable)
})
