import type { Result } from '../../api/client.ts'

export type Import = Result<'GET /v1/imports/:id'>

const ended: readonly Import['status'][] = ['completed', 'failed', 'canceled']

/** Whether nothing of an import happens any more. */
export function hasEnded({ status }: Pick<Import, 'status'>): boolean {
  return ended.includes(status)
}

/** Milliseconds between two looks at an import that goes on. */
export const pollMs = 1_000

const number = new Intl.NumberFormat()

/** Returns a count for people. */
export function countOf(count: number): string {
  return number.format(count)
}

/** Returns the name of an import: that of its file, or a placeholder where there is none. */
export function nameOfImport({ fileName }: Pick<Import, 'fileName'>): string {
  return fileName === null || fileName === '' ? 'Import without a name' : fileName
}
