import { globSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join, posix } from 'node:path'
import { parseArgs } from 'node:util'
import { indexPage, pages, root, sections, titleOf } from '../docs/.vitepress/pages.ts'
import { replacePart, table } from './docs/markdown.ts'
import { referenceParts } from './docs/reference.ts'

/*
 * Writes the index and the generated parts of the pages below `docs/`, which come from tables in the code. With
 * `--check`, reports whether they are up to date. A generated part is between two comments; the rest is written by
 * hand.
 */

const { values } = parseArgs({ options: { check: { type: 'boolean', default: false } } })

function fail(message: string): void {
  process.stderr.write(`${message}\n`)
  process.exitCode = 1
}

/** Returns a table of pages for each section, with links relative to the index. */
function indexPart(): string {
  const rowsOf = (section: (typeof sections)[number]) =>
    Object.entries(section.pages).map(([page, summary]) => [
      `[${titleOf(page)}](${posix.relative(posix.dirname(indexPage), page)})`,
      summary,
    ])
  return sections
    .map((section) => `## ${section.title}\n\n${table(['Page', 'What it says'], rowsOf(section))}`)
    .join('\n\n')
}

const listed = new Set(pages)
for (const page of globSync('docs/**/*.md', { cwd: root }).map((path) => path.replaceAll('\\', '/'))) {
  if (!listed.has(page)) fail(`${page} is not in docs/.vitepress/pages.ts. Add it there, with what it says.`)
}

const parts = [{ page: indexPage, name: 'pages', source: 'docs/.vitepress/pages.ts', content: indexPart() }]
for (const part of [...parts, ...referenceParts()]) {
  const file = join(root, part.page)
  const before = await readFile(file, 'utf8')
  const after = replacePart(before, part)
  if (after === before) continue
  if (values.check) {
    fail(`${part.page} is not what ${part.source} says. Run \`npm run docs:reference\` and commit the file.`)
  } else {
    await writeFile(file, after)
    process.stdout.write(`${part.page} is written.\n`)
  }
}

if (process.exitCode === undefined) process.stdout.write('The documents are what the tables say.\n')
