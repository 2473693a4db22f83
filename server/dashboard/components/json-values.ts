/** Returns the object that `text` holds as JSON. Undefined: the text is empty. Null: it is no object. */
export function readValues(text: string): Record<string, unknown> | undefined | null {
  if (text.trim() === '') return undefined
  try {
    const read: unknown = JSON.parse(text)
    return typeof read === 'object' && read !== null && !Array.isArray(read) ? { ...read } : null
  } catch {
    return null
  }
}
