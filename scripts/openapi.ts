import { readFile, writeFile } from 'node:fs/promises'
import { relative } from 'node:path'
import { parseArgs } from 'node:util'
import { publishedDocument } from '../openapi/published.ts'

/*
 * Writes the published spec, `openapi/openapi.json`, from the contract; with `--check` says whether
 * the committed one is up to date instead.
 */

const file = new URL('../openapi/openapi.json', import.meta.url)
const name = relative(process.cwd(), file.pathname)
const text = `${JSON.stringify(publishedDocument(), null, 2)}\n`

const { values } = parseArgs({ options: { check: { type: 'boolean', default: false } } })
if (!values.check) {
  await writeFile(file, text)
  process.stdout.write(`${name} is written.\n`)
} else if ((await readFile(file, 'utf8').catch(() => null)) === text) {
  process.stdout.write(`${name} is what the contract says.\n`)
} else {
  process.stderr.write(`${name} is not what the contract says. Run \`npm run openapi\` and commit the file.\n`)
  process.exitCode = 1
}
