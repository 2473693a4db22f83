import { isPublicHostName } from './network/host-name.ts'

/** The keys of the first account. */
export type FirstKeys = { test: string; live: string }

/** What the terminal tells of the settings. */
export type Setup = { mail: WayOut; webhooks: { allowPrivateNetworks: boolean } }

/** How email leaves, as the terminal tells it. */
export type WayOut = {
  transport: 'capture' | 'direct' | 'relay'
  relay: { host: string; port: number } | null
  /** What the service calls itself. */
  hostname: string
}

/**
 * What the terminal shows when the service is up: on the first start the keys, which are shown only
 * then, with a line to try one; in the end, always, the address, how email leaves, with what is in its way, and
 * whether webhooks may lead to private networks.
 *
 * @param url Of the service, without a slash at the end.
 */
export function welcome(url: string, keys: FirstKeys | null, { mail, webhooks }: Setup): string {
  const first = keys === null ? '' : `${firstStart(url, keys)}\n`
  const listening = `Postern listens on ${url}, with its documentation at ${url}/docs\n`
  return `${first}${listening}${tellOf(mail, `shown at ${url}/captured`)}\n${tellOfWebhooks(webhooks)}`
}

/** What it shows for a process that is no API. */
export function welcomeWorker(url: string, { mail, webhooks }: Setup): string {
  const working = `Postern works, and answers ${url}/readyz and ${url}/metrics\n`
  return `${working}${tellOf(mail, 'shown by the API at /captured')}\n${tellOfWebhooks(webhooks)}`
}

function tellOfWebhooks({ allowPrivateNetworks }: Setup['webhooks']): string {
  if (!allowPrivateNetworks) return ''
  return 'Webhooks may lead to this machine and to private networks (WEBHOOK_ALLOW_PRIVATE_NETWORKS)\n'
}

function tellOf({ transport, relay, hostname }: WayOut, shown: string): string {
  if (transport === 'capture') return `No email leaves this machine: it is captured, and ${shown}`
  if (transport === 'direct') return 'Email goes straight to the mail servers of its recipients'
  const leaving = `Email leaves over the relay ${relay?.host}:${relay?.port}`
  if (isPublicHostName(hostname)) return leaving
  return `${leaving}\nThe service calls itself ${JSON.stringify(hostname)}, which has no dot: no sending domain can be verified, since its records lead to that name, and bounces are lost; set MAIL_HOSTNAME to a name the DNS has, such as mail.example.com`
}

function firstStart(url: string, { test, live }: FirstKeys): string {
  return `
This is the first start. An account was made for you, with two keys; they are shown only now:

  test key  ${test}
  live key  ${live}

Try one:

  curl -H 'Authorization: Bearer ${test}' ${url}/v1/event-types
`
}
