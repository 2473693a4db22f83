/** Where a link may lead after signing in: a screen of an account or of the operator, or captured email; nothing else. */
const screen = /^\/captured$|^\/(operator|acc_[0-9a-z]{26}\/(live|test))(\/[\w-]+(\.[\w-]+)*)*\/?(\?[^#]*)?$/

/** Returns the path to go to after signing in. Anything that is not a screen of this dashboard becomes the start. */
export function safeNext(next: unknown): string {
  if (typeof next !== 'string') return '/'
  return screen.test(next) ? next : '/'
}
