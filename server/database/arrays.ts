import { mapYielding, slicesYielding } from '../lib/yielding.ts'

/**
 * Returns an array in PostgreSQL's text format, without quotes. Only for values that need no quotes: ids, UUIDs,
 * numbers, ISO 8601 times and constants of this code; null becomes NULL. Never use it for values from outside. `pg`
 * checks each text for characters to quote, which takes longer than all other work of sending it.
 *
 * Source: PostgreSQL 18 §8.15.6.
 */
export function plainArray(values: readonly (string | number | null)[]): string {
  return `{${values.map((value) => value ?? 'NULL').join(',')}}`
}

/** The OID of the type `text`: src/include/catalog/pg_type.dat. */
const textOid = 25
/** Number of dimensions, flag for nulls, element type, number of elements, lower bound: 4 bytes each. */
const headerBytes = 20

/**
 * Returns columns as arrays in PostgreSQL's binary format, for texts from outside. `pg` sends a Buffer unchanged, but
 * writes a list of texts as one text with escapes, which blocks the process for a second for 25 MB. Yields to the event
 * loop meanwhile. Cast such a parameter to `text[]`.
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

/** Part of a text written in one turn of the event loop, which takes a few milliseconds. UTF-16 code units. */
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
  async function writeInSlices(value: string): Promise<number> {
    for await (const slice of slicesYielding(value, sliceLength)) at += array.write(slice, at)
    return at
  }
  await mapYielding<string | null, number>(values, (value, index) => {
    // Null has the length -1.
    at = array.writeInt32BE(value === null ? -1 : (lengths[index] ?? 0), at)
    if (value !== null && value.length > sliceLength) return writeInSlices(value)
    at += array.write(value ?? '', at)
    return at
  })
  return array
}
