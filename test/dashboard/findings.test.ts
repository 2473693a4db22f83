import { expect, test } from 'vitest'
import { findingsOf, type Known, unlistedOf } from '../../server/dashboard/screens/overview/findings.ts'
import { noFigures, toEmailTotals, toWebhookTotals } from '../../server/statistics/to-response.ts'

const nothing: Known = { account: null, webhooks: [], domains: [], webhookFigures: [], domainFigures: [] }
const webhook = { id: 'wh_1', url: 'https://example.com/hooks', status: 'enabled', disabledReason: null } as const
const record = { required: true, status: 'verified' } as Known['domains'][number]['records'][number]
const domain: Known['domains'][number] = {
  id: 'dom_1',
  name: 'shop.test',
  status: 'verified',
  verifiedAt: '2026-03-01T00:00:00.000Z',
  records: [record],
}

const ofEmails = (figures: object) => ({
  key: 'dom_1',
  emails: toEmailTotals({ ...noFigures(), ...figures }),
  webhooks: null,
})
const ofAttempts = (attempts: number, failed: number) => ({
  key: 'wh_1',
  emails: null,
  webhooks: toWebhookTotals({ ...noFigures(), attempts, failed_attempts: failed }),
})

const told = (known: Partial<Known>) =>
  findingsOf({ ...nothing, ...known }).map(({ tone, link, text }) => `${tone} ${link.to}: ${text}`)

test('nothing needs attention where all is well', () => {
  const known = {
    webhooks: [webhook],
    domains: [domain],
    webhookFigures: [ofAttempts(1_000, 10)],
    domainFigures: [ofEmails({ sent: 10_000, complained: 5, bounced: 100 })],
  }
  expect(told(known)).toEqual([])
})

const withBusiest = (used: number | null) => ({
  account: {
    plan: 'free',
    requests: {
      limit: 120,
      used: 0,
      resetAt: '2026-03-01T00:01:00.000Z',
      busiest: used === null ? null : { at: '2026-03-01T00:00:00.000Z', used },
    },
  },
})

test('the rate limit is told from 80 % of it on, and as a problem when it was reached', () => {
  expect(told(withBusiest(null))).toEqual([])
  expect(told(withBusiest(95))).toEqual([])
  expect(told(withBusiest(96))).toEqual([
    expect.stringMatching(/^warn \/settings\/usage: .* used 80 % of the 120 requests that the plan free allows/),
  ])
  expect(told(withBusiest(120))).toEqual([
    expect.stringMatching(/^bad \/settings\/usage: .* used all of the 120 requests .* refused with 429/),
  ])
})

test.each([
  ['the complaint rate from 0.1 % on', { sent: 1_000, complained: 1 }, 'warn', '0.1 % of the recipients'],
  ['the complaint rate from 0.3 % on', { sent: 1_000, complained: 3 }, 'bad', '0.3 % of the recipients'],
  ['the bounce rate from 5 % on', { sent: 950, rejected: 50, bounced: 50 }, 'warn', '5 % of the emails'],
  ['the bounce rate from 10 % on', { sent: 900, rejected: 100, bounced: 100 }, 'bad', '10 % of the emails'],
])('a domain is told for %s', (_, figures, tone, words) => {
  const [finding, ...others] = told({ domains: [domain], domainFigures: [ofEmails(figures)] })
  expect(finding).toMatch(new RegExp(`^${tone} /domains/dom_1/deliverability: ${words}`))
  expect(others).toEqual([])
})

test('a domain that has sent to few, or is deleted, is not told for its rates', () => {
  expect(told({ domains: [domain], domainFigures: [ofEmails({ sent: 499, complained: 2, bounced: 100 })] })).toEqual([])
  expect(told({ domainFigures: [ofEmails({ sent: 1_000, complained: 100 })] })).toEqual([])
})

test('a domain that was verified is told when a required record is lost, and for nothing else', () => {
  const withRecord = (status: string, required = true) =>
    told({ domains: [{ ...domain, records: [record, { ...record, status, required } as typeof record] }] })
  expect(withRecord('missing')).toEqual([expect.stringMatching('^bad /domains/dom_1: A required DNS record is lost')])
  expect(withRecord('mismatch')).toHaveLength(1)
  for (const status of ['pending', 'timeout', 'server_failure']) expect(withRecord(status)).toEqual([])
  expect(withRecord('missing', false)).toEqual([])
  const unverified = {
    ...domain,
    status: 'pending' as const,
    verifiedAt: null,
    records: [{ ...record, status: 'missing' as const }],
  }
  expect(told({ domains: [unverified] })).toEqual([])
})

test('a domain that has failed is told once', () => {
  const failed = { ...domain, status: 'failed' as const, records: [{ ...record, status: 'missing' as const }] }
  expect(told({ domains: [failed] })).toEqual([expect.stringMatching('^bad /domains/dom_1: Required DNS records')])
})

test.each([
  [100, 9, []],
  [100, 10, ['warn /webhooks/wh_1: 10 % of 100 attempts since yesterday failed.']],
  [2_000, 1_000, ['bad /webhooks/wh_1: 50 % of 2,000 attempts since yesterday failed.']],
  [9, 9, []],
])('a webhook of %d attempts, of which %d failed, is told or not', (attempts, failed, expected) => {
  expect(told({ webhooks: [webhook], webhookFigures: [ofAttempts(attempts, failed)] })).toEqual(expected)
})

test('a webhook that was disabled by the service is told, and one that a person disabled is not', () => {
  const disabled = (disabledReason: 'failing' | 'gone' | 'manual') =>
    told({ webhooks: [{ ...webhook, status: 'disabled', disabledReason }] })
  expect(disabled('failing')).toEqual([expect.stringContaining('every attempt failed')])
  expect(disabled('gone')).toEqual([expect.stringContaining('410')])
  expect(disabled('manual')).toEqual([])
})

test('objects that are not listed are looked up where their rates need attention', () => {
  const figures = (sent: number, complained: number, attempts: number, failed: number) => ({
    ...nothing,
    domainFigures: [{ ...ofEmails({ sent, complained }), key: 'dom_2' }],
    webhookFigures: [{ ...ofAttempts(attempts, failed), key: 'wh_2' }],
  })
  const failing = figures(1_000, 3, 100, 50)
  expect(unlistedOf(failing)).toEqual({ domains: ['dom_2'], webhooks: ['wh_2'] })
  expect(unlistedOf(figures(1_000, 0, 100, 0))).toEqual({ domains: [], webhooks: [] })
  expect(unlistedOf(figures(499, 3, 9, 9))).toEqual({ domains: [], webhooks: [] })
  const listed = { domains: [{ ...domain, id: 'dom_2' }], webhooks: [{ ...webhook, id: 'wh_2' }] }
  expect(unlistedOf({ ...failing, ...listed })).toEqual({ domains: [], webhooks: [] })
  expect(told({ ...failing, ...listed })).toEqual([
    expect.stringContaining('bad /domains/dom_2/deliverability'),
    expect.stringContaining('bad /webhooks/wh_2'),
  ])
})

test('the worst stands first', () => {
  const known = {
    webhooks: [{ ...webhook, status: 'disabled', disabledReason: 'gone' } as const],
    domains: [domain],
    domainFigures: [ofEmails({ sent: 1_000, complained: 1 })],
  }
  expect(told(known).map((finding) => finding.split(' ')[0])).toEqual(['bad', 'warn'])
})
