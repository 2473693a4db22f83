/** A place in the document and what stands there. */
export type Place = { pointer: string; value: Record<string, unknown> }

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** `a/b` → `a~1b`, and safe in a URI fragment (RFC 6901 §6). */
function token(key: string): string {
  return encodeURIComponent(key.replaceAll('~', '~0').replaceAll('/', '~1'))
}

/**
 * Every object of a document with its JSON pointer, examples left out: what they hold is data, and
 * may look like anything.
 */
export function* objectsOf(value: unknown, pointer = ''): Generator<Place> {
  if (Array.isArray(value)) {
    for (const [index, entry] of value.entries()) yield* objectsOf(entry, `${pointer}/${index}`)
    return
  }
  if (!isObject(value)) return
  yield { pointer, value }
  // A field may be called so too.
  const isFields = pointer.endsWith('/properties')
  for (const [key, entry] of Object.entries(value)) {
    if (isFields || (key !== 'examples' && key !== 'example')) yield* objectsOf(entry, `${pointer}/${token(key)}`)
  }
}

/** Returns the value that `#/a/b` points to in `document`; `undefined` when nothing is there. */
export function resolve(document: unknown, reference: string): unknown {
  const keys = reference.replace(/^#\/?/, '').split('/')
  return keys.reduce<unknown>((value, key) => {
    const name = decodeURIComponent(key).replaceAll('~1', '/').replaceAll('~0', '~')
    if (Array.isArray(value)) return value[Number(name)]
    return isObject(value) ? value[name] : undefined
  }, document)
}
