/** Whether `error` carries one of `codes`, as the errors of Node, the operating system and PostgreSQL do. */
export function hasCode(error: unknown, ...codes: string[]): boolean {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' && codes.includes(error.code)
}

/** What an error says, for a sentence of ours to carry on. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
