/** Returns the name of a person in one line; a dash where none is known. */
export function nameOf({ firstName, lastName }: { firstName: string | null; lastName: string | null }): string {
  return [firstName, lastName].filter((part) => part !== null && part !== '').join(' ') || '–'
}
