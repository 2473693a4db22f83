import { isPublicHostName } from './network/host-name.ts'

/** The keys of the first account, and the link that makes its first user. */
export type FirstSecrets = { test: string; live: string; userLink: string }

/** Who can use the service. */
export type Access = {
  /** Null: this is not the first start. */
  first: FirstSecrets | null
  /** True when the dashboard has no users, and this is not the first start. */
  nobodySignsIn: boolean
}

/** The settings that the terminal shows. */
export type Setup = { mail: WayOut; webhooks: { allowPrivateNetworks: boolean } }

/** How email leaves, as shown in the terminal. */
export type WayOut = {
  transport: 'capture' | 'direct' | 'relay'
  relay: { host: string; port: number } | null
  /** The host name that the service uses with mail servers. */
  hostname: string
}

/**
 * Returns the text for the terminal when the service is up. On the first start it begins with the link for the first
 * user and the keys, which are shown only then, and a command to try one. It always contains the address, how email leaves and what prevents that, and
 * whether webhooks may reach private networks.
 *
 * @param url The URL of the service, without a slash at the end.
 */
export function welcome(url: string, { first: secrets, nobodySignsIn }: Access, { mail, webhooks }: Setup): string {
  const first = secrets === null ? '' : `${firstStart(url, secrets)}\n`
  const users = nobodySignsIn ? noUsers : ''
  const listening = `Postern listens on ${url}, with its documentation at ${url}/docs\n`
  return `${first}${listening}${users}${tellOf(mail, `shown at ${url}/captured`)}\n${tellOfWebhooks(webhooks)}`
}

/** Returns the text for a process without an API. */
export function welcomeWorker(url: string, { mail, webhooks }: Setup): string {
  const working = `Postern works, and answers ${url}/readyz and ${url}/metrics\n`
  return `${working}${tellOf(mail, 'shown in the dashboard, where /captured of the API leads')}\n${tellOfWebhooks(webhooks)}`
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

const noUsers =
  'There is no user of the dashboard yet; make a link with: npm run --silent postern -- users invite <your address>\n'

function firstStart(url: string, { test, live, userLink }: FirstSecrets): string {
  return `
This is the first start. An account was made for you. Open this link to sign in to its dashboard; it works once, for 7 days:

  ${userLink}

It has two keys; they are shown only now:

  test key  ${test}
  live key  ${live}

Try one:

  curl -H 'Authorization: Bearer ${test}' ${url}/v1/event-types
`
}
