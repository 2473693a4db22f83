import ipaddr from 'ipaddr.js'

/** A request for a pixel or a tracked link. */
export type Fetch = {
  kind: 'opened' | 'clicked'
  userAgent: string | null
  ipAddress: string | null
  /** True when the request has a header that declares it a prefetch. */
  prefetch: boolean
}

type AgentRule = {
  name: string
  agent: RegExp
  /** The kind of visits that the rule applies to. Default: both. */
  only?: Fetch['kind']
}

/**
 * User agents of automated clients. Proxies that fetch images for a person who is looking, such as those of Gmail
 * (`GoogleImageProxy`) and Yahoo (`YahooMailProxy`), are not listed: their requests are opens.
 */
export const agentRules: readonly AgentRule[] = [
  { name: 'Apple Mail Privacy Protection, which fetches all images on arrival', agent: /^Mozilla\/5\.0$/ },
  { name: 'Gmail, which fetches ahead while its user is signed in', agent: /Edge\/12\.246 Mozilla\/5\.0$/ },
  { name: 'Microsoft, previews', agent: /BingPreview|SkypeUriPreview|Microsoft Preview/i },
  { name: 'Microsoft Defender and Safe Links', agent: /SafeLinks|Microsoft Defender|MSDefender/i },
  // Outlook fetches images itself for a person, but opens links in the browser.
  { name: 'Microsoft Office, which probes links', agent: /ms-?office|Microsoft Office/i, only: 'clicked' },
  { name: 'Barracuda', agent: /Barracuda/i },
  { name: 'Proofpoint', agent: /Proofpoint|urldefense/i },
  { name: 'Mimecast', agent: /Mimecast/i },
  { name: 'Cisco Secure Email', agent: /IronPort|CiscoSecureEmail/i },
  { name: 'Symantec and Broadcom', agent: /Symantec|MessageLabs/i },
  { name: 'Trend Micro', agent: /TrendMicro|\bTMES\b/i },
  {
    name: 'other filters of mail',
    agent: /Sophos|FortiMail|Forcepoint|Trellix|FireEye|Hornetsecurity|Vade(?:Secure| )/i,
  },
  {
    name: 'previews of links in chats',
    agent: /Slackbot|WhatsApp|TelegramBot|facebookexternalhit|Discordbot|SkypeShell/i,
  },
  // CUBOT is a brand of phones.
  { name: 'robots by their name', agent: /(?<!cu)bot\b|crawl|spider|slurp|scanner|prefetch|link-?check/i },
  { name: 'browsers without a screen', agent: /HeadlessChrome|PhantomJS|Puppeteer|Playwright/i },
  {
    name: 'libraries and command lines',
    agent:
      /^(?:curl|wget|python|aiohttp|java|okhttp|go-http-client|ruby|php|perl|libwww|axios|node|undici|got|postman|apache-httpclient|ahc|guzzle|lua-resty)/i,
  },
]

/**
 * Networks of mail filters that use the user agent of a normal browser, as their owners publish them. Review the list
 * from time to time: visits from a missing network are counted as a person's.
 */
export const scannerNetworks: Readonly<Record<string, readonly string[]>> = {
  'Microsoft Exchange Online Protection': [
    '40.92.0.0/15',
    '40.107.0.0/16',
    '52.100.0.0/14',
    '104.47.0.0/17',
    '2a01:111:f400::/48',
    '2a01:111:f403::/48',
  ],
  Barracuda: ['64.235.144.0/20', '209.222.80.0/21'],
  Proofpoint: ['67.231.144.0/20', '148.163.128.0/19', '185.132.180.0/22', '185.183.28.0/22', '205.220.160.0/19'],
  Mimecast: [
    '63.128.21.0/24',
    '91.220.42.0/24',
    '146.101.78.0/24',
    '195.130.217.0/24',
    '205.139.110.0/23',
    '207.211.30.0/23',
    '216.205.24.0/24',
  ],
}

const networks = Object.values(scannerNetworks).flat().map(ipaddr.parseCIDR)

/** Minimum time in which a person can read a message and follow a link. Milliseconds. */
export const minReadingMs = 3_000

/** Returns whether a request looks automated, by its headers and its IP address. */
export function isAutomated({ kind, userAgent, ipAddress, prefetch }: Fetch): boolean {
  // Every browser and every mail program sends a user agent.
  if (prefetch || userAgent === null || userAgent.trim() === '') return true
  if (agentRules.some(({ agent, only }) => (only ?? kind) === kind && agent.test(userAgent))) return true
  return ipAddress !== null && isScanner(ipAddress)
}

/** Returns whether a link was followed sooner after the message was accepted than a person can. */
export function isTooSoon(clickedAt: Date, acceptedAt: Date | null): boolean {
  return acceptedAt !== null && clickedAt.getTime() - acceptedAt.getTime() < minReadingMs
}

function isScanner(text: string): boolean {
  if (!ipaddr.isValid(text)) return false
  const address = ipaddr.process(text)
  return networks.some((network) => network[0].kind() === address.kind() && address.match(network))
}
