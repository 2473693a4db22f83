import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Returns a hash of all that the built dashboard is made from: its source, the contract, the packages and the build. */
export function sourceHash(root: string): string {
  const hash = createHash('sha256')
  const files = [
    'package-lock.json',
    ...filesIn(root, 'contract'),
    ...filesIn(root, 'scripts/dashboard'),
    ...filesIn(root, 'server/dashboard'),
  ]
  for (const file of files) {
    const bytes = readFileSync(join(root, file))
    hash.update(`${file}\0${bytes.length}\0`).update(bytes)
  }
  return hash.digest('hex')
}

function filesIn(root: string, folder: string): string[] {
  const found: string[] = []
  for (const entry of readdirSync(join(root, folder), { withFileTypes: true })) {
    const path = `${folder}/${entry.name}`
    if (entry.isDirectory()) {
      if (!/^built\b/.test(entry.name)) found.push(...filesIn(root, path))
    } else if (entry.isFile()) found.push(path)
  }
  return found.sort()
}
