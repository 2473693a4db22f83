/** Returns the `code` of an error of Node, the system or PostgreSQL. Empty: it has none. */
export function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : ''
}

/** Returns true when the code of an error is one of `codes`. */
export function hasCode(error: unknown, ...codes: string[]): boolean {
  return codes.includes(codeOf(error))
}

/** Returns the message of an error, or any other thrown value as text. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
