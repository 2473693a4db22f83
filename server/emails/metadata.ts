import { createHash } from 'node:crypto'

/** Returns the search key of each pair: a hash, which has the same length for all pairs. */
export function pairsOf(metadata: Readonly<Record<string, string>>): string[] {
  return Object.entries(metadata).map((pair) => createHash('sha256').update(JSON.stringify(pair)).digest('base64url'))
}
