import { leadsToOwnMachine } from '../network/local-host.ts'

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
