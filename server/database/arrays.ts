/**
 * An array as PostgreSQL writes it, of values that stand in one without quotes: identifiers, UUIDs, numbers, times
 * in ISO 8601, words of ours; null is its null. `pg` looks at each text for what to quote, which takes longer than
 * all else that is done to send it. Nothing that comes from outside.
 *
 * Source: PostgreSQL 18 §8.15.6.
 */
export function plainArray(values: readonly (string | number | null)[]): string {
  return `{${values.map((value) => value ?? 'NULL').join(',')}}`
}
