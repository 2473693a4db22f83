import { readdir, readFile } from 'node:fs/promises'
import { breakingChanges } from '../openapi/breaking-changes.ts'
import { acceptedChanges } from '../openapi/released/accepted.ts'

/*
 * Compares the published spec, or the file in the first argument, with that of the last release,
 * `openapi/released/<version>.json`. Fails for a change that could break a client, unless it is accepted with a reason.
 */

const folder = 'openapi/released'
const byVersion = new Intl.Collator('en', { numeric: true }).compare

const released = (await readdir(folder)).filter((name) => name.endsWith('.json')).toSorted(byVersion)
const last = released.at(-1)
if (last === undefined) throw new Error(`${folder} has no spec of a release`)

const read = async (file: string): Promise<object> => JSON.parse(await readFile(file, 'utf8'))
const changes = breakingChanges(await read(`${folder}/${last}`), await read(process.argv[2] ?? 'openapi/openapi.json'))

const accepted = new Set(acceptedChanges.flatMap((entry) => entry.changes))
const refused = changes.filter((change) => !accepted.has(change))
const stale = [...accepted].filter((change) => !changes.includes(change))

if (refused.length > 0) {
  process.stderr.write(`These changes since ${last} could break a client:\n- ${refused.join('\n- ')}\n`)
  process.stderr.write(`Undo them, or accept each with a reason in ${folder}/accepted.ts.\n`)
  process.exitCode = 1
}
if (stale.length > 0 && process.argv[2] === undefined) {
  process.stderr.write(`These accepted changes no longer exist:\n- ${stale.join('\n- ')}\n`)
  process.stderr.write(`Remove them from ${folder}/accepted.ts.\n`)
  process.exitCode = 1
}
if (process.exitCode !== 1) {
  const exceptions = changes.length === 0 ? '' : `, but for ${changes.length} accepted changes`
  process.stdout.write(`Nothing breaks a client of ${last}${exceptions}.\n`)
}
