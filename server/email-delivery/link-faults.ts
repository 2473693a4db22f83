import { leadsToOwnMachine } from '../network/local-host.ts'

/** The settings that decide where links in emails lead. */
export type LinkSettings = {
  http: { publicUrl: string | null }
  roles: { api: boolean; worker: boolean }
  mail: { transport: 'relay' | 'direct' | 'capture' }
}

/**
 * Returns why links in emails would lead nowhere with these settings; null: they lead to this service. PUBLIC_URL is
 * not needed for captured email if the same process sends it and serves its links.
 */
export function faultOfLinksIn({ http, roles, mail }: LinkSettings): string | null {
  if (mail.transport !== 'capture') return faultOfLinks(http.publicUrl)
  if (http.publicUrl !== null || (roles.api && roles.worker)) return null
  return 'PUBLIC_URL is not set, and with ROLES the API and the workers are processes of their own'
}

/**
 * Returns why links in emails that leave this machine cannot use `publicUrl`, as text for people; null: they can.
 * RFC 8058 §3.1 requires https for the unsubscribe link.
 *
 * @param publicUrl The setting PUBLIC_URL; null: not set.
 */
export function faultOfLinks(publicUrl: string | null): string | null {
  if (publicUrl === null) return 'PUBLIC_URL is not set'
  const { protocol, hostname } = new URL(publicUrl)
  const shown = `PUBLIC_URL is ${JSON.stringify(publicUrl)}`
  if (leadsToOwnMachine(hostname)) return `${shown}, which leads to this machine alone`
  return protocol === 'https:' ? null : `${shown}, which is not https`
}
