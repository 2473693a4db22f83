/** Where a link may lead after signing in: a screen of an account, and nothing else. */
const screenOfAccount = /^\/acc_[0-9a-z]{26}\/(live|test)(\/[\w/-]*)?(\?[^#]*)?$/

/** Returns the path to go to after signing in. Anything that is not a screen of this dashboard becomes the start. */
export function safeNext(next: unknown): string {
  if (typeof next !== 'string') return '/'
  return screenOfAccount.test(next) ? next : '/'
}
