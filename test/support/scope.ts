import type { Author, AuthoredScope } from '../../server/shared/scope.ts'

/** Who changes what a test changes past the API. */
const author: Author = { actor: { type: 'key', id: 'key_of_the_test', name: 'A key' }, ipAddress: '203.0.113.1' }

/** Returns the scope of a live key of an account. */
export function live(accountId: string): AuthoredScope {
  return { accountId, mode: 'live', author }
}

/** Returns the scope of a test key of an account. */
export function testing(accountId: string): AuthoredScope {
  return { accountId, mode: 'test', author }
}
