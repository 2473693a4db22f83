const usualPort = 4000
const loopback = /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/

/** Stands in a command in place of the secret. */
export const secretPlaceholder = 'whsec_…'

/** Returns true when a text is a signing secret, and so can stand between quotes of a shell. */
export function isSecret(text: string): boolean {
  return /^whsec_[A-Za-z0-9+/]{8,200}={0,2}$/.test(text)
}

/**
 * Returns the port that a receiver of a webhook listens on: that of its URL where it leads to this machine, else 4000.
 *
 * @param url The URL of the webhook.
 */
export function portOf(url: string): number {
  if (!leadsHere(url)) return usualPort
  const { port, protocol } = new URL(url)
  if (port !== '') return Number(port)
  return protocol === 'https:' ? 443 : 80
}

/** Returns true when a URL leads to the machine that it is opened on. */
export function leadsHere(url: string): boolean {
  return loopback.test(new URL(url).hostname)
}
