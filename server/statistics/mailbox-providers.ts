/** Mailbox providers by the names that people know them by, with their domains. Domains of companies are not known. */
const domainsOf = {
  Gmail: ['gmail.com', 'googlemail.com'],
  Outlook: [
    ...['outlook.com', 'outlook.de', 'outlook.fr', 'outlook.es', 'outlook.it', 'outlook.jp', 'outlook.com.br'],
    ...['hotmail.com', 'hotmail.co.uk', 'hotmail.de', 'hotmail.fr', 'hotmail.es', 'hotmail.it', 'hotmail.nl'],
    ...['live.com', 'live.co.uk', 'live.de', 'live.fr', 'live.it', 'live.nl', 'live.se', 'live.dk', 'live.no'],
    ...['msn.com', 'windowslive.com', 'passport.com'],
  ],
  Yahoo: [
    ...['yahoo.com', 'yahoo.co.uk', 'yahoo.de', 'yahoo.fr', 'yahoo.es', 'yahoo.it', 'yahoo.ca', 'yahoo.in'],
    ...['yahoo.co.in', 'yahoo.com.br', 'yahoo.com.mx', 'yahoo.com.ar', 'yahoo.com.au', 'yahoo.co.id'],
    ...['ymail.com', 'rocketmail.com', 'myyahoo.com'],
  ],
  'Yahoo Japan': ['yahoo.co.jp', 'ybb.ne.jp'],
  AOL: ['aol.com', 'aim.com', 'aol.co.uk', 'aol.de', 'aol.fr'],
  iCloud: ['icloud.com', 'me.com', 'mac.com'],
  GMX: ['gmx.net', 'gmx.de', 'gmx.at', 'gmx.ch', 'gmx.com', 'gmx.fr', 'gmx.co.uk'],
  'WEB.DE': ['web.de'],
  'T-Online': ['t-online.de', 'magenta.de'],
  Proton: ['proton.me', 'protonmail.com', 'protonmail.ch', 'pm.me'],
  Fastmail: ['fastmail.com', 'fastmail.fm'],
  Zoho: ['zoho.com', 'zohomail.com', 'zoho.eu', 'zohomail.eu'],
  Yandex: ['yandex.ru', 'yandex.com', 'ya.ru', 'yandex.by', 'yandex.kz'],
  'Mail.ru': ['mail.ru', 'bk.ru', 'inbox.ru', 'list.ru', 'internet.ru'],
  QQ: ['qq.com', 'foxmail.com'],
  NetEase: ['163.com', '126.com', 'yeah.net'],
  Naver: ['naver.com'],
  Orange: ['orange.fr', 'wanadoo.fr'],
  Comcast: ['comcast.net'],
  Libero: ['libero.it'],
} as const satisfies Record<string, readonly string[]>

const providers = new Map<string, string>(
  Object.entries(domainsOf).flatMap(([name, domains]) => domains.map((domain) => [domain, name] as const)),
)

/** Returns the mailbox provider of a domain in lower case; null: it is not a well-known one. */
export function mailboxProviderOf(domain: string): string | null {
  return providers.get(domain) ?? null
}
