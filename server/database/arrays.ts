import { mapYielding, slicesYielding } from '../lib/yielding.ts'

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

/** The type `text` in PostgreSQL: src/include/catalog/pg_type.dat. */
const textOid = 25
/** Dimensions, whether there are nulls, type, entries, first index: 4 bytes each. */
const headerBytes = 20

/**
 * The same columns as arrays in PostgreSQL's binary form, for texts from outside: `pg` gives a Buffer on as it is.
 * It would write a list of texts as one text with escapes, which stops the process for a second on 25 MB. Lets the
 * event loop turn meanwhile. A parameter of them must be cast to `text[]`.
 *
 * Source: `array_recv` in PostgreSQL's src/backend/utils/adt/arrayfuncs.c.
 */
export async function textArrays<K extends string>(
  columns: Readonly<Record<K, readonly (string | null)[]>>,
): Promise<Record<K, Buffer>> {
  const arrays: Partial<Record<K, Buffer>> = {}
  for (const name in columns) arrays[name] = await textArray(columns[name])
  return arrays as Record<K, Buffer>
}

/** Written in one turn of the event loop: a few milliseconds. Characters of UTF-16. */
const sliceLength = 262_144

async function textArray(values: readonly (string | null)[]): Promise<Buffer> {
  const lengths = await mapYielding(values, (value) => (value === null ? 0 : Buffer.byteLength(value)))
  const array = Buffer.allocUnsafe(lengths.reduce((sum, length) => sum + 4 + length, headerBytes))
  array.writeInt32BE(1, 0)
  array.writeInt32BE(values.includes(null) ? 1 : 0, 4)
  array.writeInt32BE(textOid, 8)
  array.writeInt32BE(values.length, 12)
  array.writeInt32BE(1, 16)
  let at = headerBytes
  await mapYielding(values, async (value, index) => {
    // The length of null is -1.
    at = array.writeInt32BE(value === null ? -1 : (lengths[index] ?? 0), at)
    for await (const slice of slicesYielding(value ?? '', sliceLength)) at += array.write(slice, at)
  })
  return array
}
