import { expect, test } from 'vitest'
import {
  agentRules,
  type Fetch,
  isAutomated,
  isTooSoon,
  minReadingMs,
  scannerNetworks,
} from '../../server/tracking/automated-visits.ts'

const chrome =
  'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/139.0.0.0 Safari/537.36'
const open: Fetch = { kind: 'opened', userAgent: chrome, ipAddress: '93.184.216.34', prefetch: false }

test.each([
  ['a browser', chrome],
  [
    'Apple Mail on a telephone',
    'Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148',
  ],
  ['Thunderbird', 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Thunderbird/140.1.0'],
  [
    'the image proxy of Gmail',
    'Mozilla/5.0 (Windows NT 5.1; rv:11.0) Gecko Firefox/11.0 (via ggpht.com GoogleImageProxy)',
  ],
  ['the image proxy of Yahoo', 'YahooMailProxy; https://help.yahoo.com/kb/yahoo-mail-proxy-SLN28749.html'],
  [
    'Outlook',
    'Mozilla/4.0 (compatible; MSIE 7.0; Windows NT 10.0; Microsoft Outlook 16.0.5000; ms-office; MSOffice 16)',
  ],
  [
    'a telephone called CUBOT',
    'Mozilla/5.0 (Linux; Android 14; CUBOT X90) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/139.0.0.0 Mobile Safari/537.36',
  ],
])('a person opens with %s', (_, userAgent) => {
  expect(isAutomated({ ...open, userAgent })).toBe(false)
})

test.each(['8.8.8.8', '2001:db8::1', '::ffff:93.184.216.34', '127.0.0.1', 'unknown', null])(
  'a person may come from %s',
  (ipAddress) => {
    expect(isAutomated({ ...open, ipAddress })).toBe(false)
  },
)

test.each([
  ['Apple Mail Privacy Protection', 'Mozilla/5.0'],
  [
    'what Gmail fetches ahead',
    'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/42.0.2311.135 Safari/537.36 Edge/12.246 Mozilla/5.0',
  ],
  ['a preview of Microsoft', `${chrome} BingPreview/1.0b`],
  ['Barracuda', 'Barracuda Sentinel (EE)'],
  ['Proofpoint', 'Mozilla/5.0 (compatible; Proofpoint URL Defense)'],
  ['Mimecast', 'Mimecast-URL-Scanner/1.0'],
  ['a search engine', 'Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)'],
  ['a browser without a screen', chrome.replace('Chrome', 'HeadlessChrome')],
  ['curl', 'curl/8.14.1'],
  ['Python', 'python-requests/2.32.4'],
  ['Go', 'Go-http-client/2.0'],
  ['what says nothing of itself', null],
  ['what says as good as nothing', ' '],
])('a machine is %s', (_, userAgent) => {
  expect(isAutomated({ ...open, userAgent })).toBe(true)
  expect(isAutomated({ ...open, kind: 'clicked', userAgent })).toBe(true)
})

test('a machine is Office where it follows a link, which it leaves to the browser for people', () => {
  const userAgent = 'Microsoft Office Existence Discovery'

  expect(isAutomated({ ...open, kind: 'clicked', userAgent })).toBe(true)
  expect(isAutomated({ ...open, kind: 'opened', userAgent })).toBe(false)
})

test('a machine is what says that it fetches ahead', () => {
  expect(isAutomated({ ...open, prefetch: true })).toBe(true)
})

test.each(Object.entries(scannerNetworks).flatMap(([name, networks]) => networks.map((network) => [name, network])))(
  'a machine of %s comes from %s',
  (_, network = '') => {
    const first = network.slice(0, network.indexOf('/'))
    expect(isAutomated({ ...open, ipAddress: first })).toBe(true)
    if (!first.includes(':')) expect(isAutomated({ ...open, ipAddress: `::ffff:${first}` })).toBe(true)
  },
)

test('a machine follows a link sooner than a person can read', () => {
  const at = new Date('2026-03-01T09:30:00.000Z')
  const later = (ms: number) => new Date(at.getTime() + ms)

  expect(isTooSoon(later(minReadingMs - 1), at)).toBe(true)
  expect(isTooSoon(later(-1), at)).toBe(true)
  expect(isTooSoon(later(minReadingMs), at)).toBe(false)
  expect(isTooSoon(at, null)).toBe(false)
})

test('no rule takes long, whatever a client calls itself', () => {
  for (const text of ['a'.repeat(8_000), 'Mozilla/5.0 '.repeat(700), 'ms-'.repeat(2_500), 'link-'.repeat(1_600)]) {
    expect(agentRules.filter(({ agent }) => agent.test(text))).toEqual([])
  }
})
