import type { Input } from './client.ts'

type Answer = Input<'POST /v1/session/provider'>['body']

/** The purpose of a visit to the identity provider, and the path to open after it. Kept in the session storage. */
export type Errand = { purpose: 'sign in' | 'link'; next: string }

const key = 'postern provider'

/** Goes to the page of the identity provider, and remembers what for. */
export function leaveFor(url: string, errand: Errand): void {
  window.sessionStorage.setItem(key, JSON.stringify(errand))
  window.location.assign(url)
}

/**
 * Takes the answer of the provider out of the address at once, so that neither history nor a shared screen keeps it.
 * `answer` is null when the provider, or its user, refused. An errand that is not remembered is to sign in.
 */
export function takeAnswer(): { errand: Errand; answer: Answer | null } {
  const query = new URLSearchParams(window.location.search)
  const [code, state, iss] = [query.get('code'), query.get('state'), query.get('iss')]
  window.history.replaceState(window.history.state, '', window.location.pathname)
  const errand = errandOf(window.sessionStorage.getItem(key))
  window.sessionStorage.removeItem(key)
  return { errand, answer: code === null || state === null ? null : { code, state, ...(iss !== null && { iss }) } }
}

function errandOf(text: string | null): Errand {
  const kept: unknown = text === null ? null : JSON.parse(text)
  const isLink = kept !== null && typeof kept === 'object' && 'purpose' in kept && kept.purpose === 'link'
  const next = kept !== null && typeof kept === 'object' && 'next' in kept ? String(kept.next) : '/'
  return { purpose: isLink ? 'link' : 'sign in', next }
}
