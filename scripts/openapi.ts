import { readFile, writeFile } from 'node:fs/promises'
import { parseArgs } from 'node:util'
import { publishedDocument } from '../openapi/published.ts'

/*
 * Writes the published spec, `openapi/openapi.json` or the file in the first argument, from the contract. With
 * `--check`, reports whether it is up to date.
 */

const { values, positionals } = parseArgs({
  options: { check: { type: 'boolean', default: false } },
  allowPositionals: true,
})
const file = positionals[0] ?? 'openapi/openapi.json'
const text = `${JSON.stringify(publishedDocument(), null, 2)}\n`

if (!values.check) {
  await writeFile(file, text)
  process.stdout.write(`${file} is written.\n`)
} else if ((await readFile(file, 'utf8').catch(() => null)) === text) {
  process.stdout.write(`${file} is what the contract says.\n`)
} else {
  process.stderr.write(`${file} is not what the contract says. Run \`npm run openapi\` and commit the file.\n`)
  process.exitCode = 1
}
