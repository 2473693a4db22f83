import { createHash } from 'node:crypto'

/** What each pair is found by: a hash, as long for every pair. */
export function pairsOf(metadata: Readonly<Record<string, string>>): string[] {
  return Object.entries(metadata).map((pair) => createHash('sha256').update(JSON.stringify(pair)).digest('base64url'))
}
