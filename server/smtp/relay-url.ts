import type { Credentials } from './authenticate.ts'
import type { TlsMode } from './session.ts'

/** The relay that takes all messages. */
export type RelayConfig = { host: string; port: number; tls: TlsMode; credentials: Credentials | null }

const portOf: Record<TlsMode, number> = { opportunistic: 25, verified: 587, implicit: 465 }

/**
 * Parses the setting `SMTP_URL`. Null: it is invalid. `smtp://user:password@host:port` requires STARTTLS with a valid
 * certificate if it has a password or `?tls=required`; `smtps://` uses TLS from the first byte. Default ports: 25, with
 * required STARTTLS 587, with `smtps:` 465.
 */
export function parseRelayUrl(text: string): RelayConfig | null {
  if (!URL.canParse(text)) return null
  const url = new URL(text)
  const credentials = credentialsOf(url)
  const tls = tlsOf(url, credentials !== null)
  const isPlain = ['', '/'].includes(url.pathname) && url.hash === ''
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
  if (tls === null || credentials === 'invalid' || !/^[\w.:-]+$/.test(host) || !isPlain) return null
  return { host, port: url.port === '' ? portOf[tls] : Number(url.port), tls, credentials }
}

function tlsOf({ protocol, search }: URL, hasCredentials: boolean): TlsMode | null {
  if (protocol === 'smtps:' && search === '') return 'implicit'
  if (protocol !== 'smtp:') return null
  if (search === '?tls=required' || (search === '' && hasCredentials)) return 'verified'
  return search === '' || (search === '?tls=opportunistic' && !hasCredentials) ? 'opportunistic' : null
}

function credentialsOf({ username, password }: URL): Credentials | null | 'invalid' {
  if (username === '' && password === '') return null
  try {
    const credentials = { user: decodeURIComponent(username), password: decodeURIComponent(password) }
    const isUsable = Object.values(credentials).every((part) => part !== '' && !part.includes('\0'))
    return isUsable ? credentials : 'invalid'
  } catch {
    return 'invalid'
  }
}
