import type { Choices } from '../api/hooks.ts'

/** Returns a sentence where a field offers less than there is. Empty: it offers all. */
export function newestOffered({ data, hasMore }: Pick<Choices<unknown>, 'data' | 'hasMore'>): string {
  return hasMore ? `The newest ${data?.length.toLocaleString('en')} are offered.` : ''
}
