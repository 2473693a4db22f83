import type { Account } from '../../../../contract/account.ts'
import type { Domain as WholeDomain } from '../../../../contract/domains.ts'
import type { StatisticsRanking } from '../../../../contract/statistics.ts'
import type { Webhook as WholeWebhook } from '../../../../contract/webhooks.ts'
import { countOf, percentOf } from './format.ts'

/*
 * Rates at which a finding is shown. Gmail asks senders to keep complaints below 0.1 % and never to reach 0.3 %, Yahoo
 * to stay below 0.3 %. Neither publishes a limit for bounces; Amazon SES reviews accounts from 5 % on and may stop them
 * from 10 % on. docs/concepts/statistics.md has the sources.
 */
const complaints = { bad: 0.003, warn: 0.001 } as const
const bounces = { bad: 0.1, warn: 0.05 } as const
/** A rate of fewer recipients says little: one complaint would be above the limit. */
const minRecipients = 500
const failures = { bad: 0.5, warn: 0.1 } as const
const minAttempts = 10
/** Of the requests that the plan allows in a minute. */
const requests = { bad: 1, warn: 0.8 } as const

/** The record is there, or could not be looked up: nothing to do. */
const fineRecords: readonly string[] = ['verified', 'pending', 'timeout', 'server_failure']

type Ranked = StatisticsRanking['data'][number]
type Webhook = Pick<WholeWebhook, 'id' | 'url' | 'status' | 'disabledReason'>
type Domain = Pick<WholeDomain, 'id' | 'name' | 'status' | 'verifiedAt' | 'records'>

/** Something that needs attention, and the screen that solves it. */
export type Finding = {
  tone: 'bad' | 'warn'
  /** The subject of the finding: a domain, a webhook, or the requests of the account. */
  about: string
  text: string
  link: { to: string; label: string }
}

export type Known = {
  /** Null: not known. */
  account: Pick<Account, 'plan' | 'requests'> | null
  webhooks: readonly Webhook[]
  domains: readonly Domain[]
  /** Of the last 24 to 48 hours. */
  webhookFigures: readonly Ranked[]
  /** Of the last 7 days. */
  domainFigures: readonly Ranked[]
}

/** Returns what needs attention, the worst first. */
export function findingsOf(known: Known): Finding[] {
  const all = [...ofRequests(known), ...ofDomains(known), ...ofRates(known), ...ofWebhooks(known)]
  return [...all.filter(({ tone }) => tone === 'bad'), ...all.filter(({ tone }) => tone === 'warn')]
}

/**
 * Returns the ids of the domains and webhooks whose rates need attention, and that are not among those that were read.
 * They may be deleted, too.
 */
export function unlistedOf({ domains, webhooks, domainFigures, webhookFigures }: Known): {
  domains: string[]
  webhooks: string[]
} {
  const known = new Set([...domains, ...webhooks].map(({ id }) => id))
  const unknown = (figures: readonly Ranked[]) => figures.filter(({ key }) => !known.has(key))
  return {
    domains: unknown(domainFigures)
      .filter(({ emails }) => emails !== null && (complaintTone(emails) ?? bounceTone(emails)) !== null)
      .map(({ key }) => key),
    webhooks: unknown(webhookFigures)
      .filter(({ webhooks: counted }) => counted !== null && failureTone(counted) !== null)
      .map(({ key }) => key),
  }
}

function* ofRequests({ account }: Known): Generator<Finding> {
  if (account === null) return
  const { limit, busiest } = account.requests
  const share = busiest === null ? null : busiest.used / limit
  const tone = toneOf(share, requests)
  if (tone === null) return
  const allowed = `the ${countOf(limit)} requests that the plan ${account.plan} allows in a minute`
  const text =
    tone === 'bad'
      ? `In the last hour, one minute used all of ${allowed}. Further requests of that minute were refused with 429.`
      : `In the last hour, one minute used ${percentOf(share, 0)} of ${allowed}. Beyond them, requests are refused with 429.`
  yield { tone, about: 'Requests with API keys', text, link: { to: '/settings/usage', label: 'See plan and usage' } }
}

function* ofDomains({ domains }: Known): Generator<Finding> {
  for (const { id, name, status, verifiedAt, records } of domains) {
    const link = { to: `/domains/${id}`, label: 'See the records' }
    if (status === 'failed') {
      const text = 'Required DNS records are missing. Live emails cannot be sent from it.'
      yield { tone: 'bad', about: name, text, link }
      continue
    }
    const lost = records.filter(({ required, status: found }) => required && !fineRecords.includes(found)).length
    if (verifiedAt === null || lost === 0) continue
    const text = `${lost === 1 ? 'A required DNS record is' : `${lost} required DNS records are`} lost. If they stay lost, the domain can no longer send.`
    yield { tone: 'bad', about: name, text, link }
  }
}

function* ofRates({ domains, domainFigures }: Known): Generator<Finding> {
  const names = new Map(domains.map(({ id, name }) => [id, name]))
  for (const { key, emails } of domainFigures) {
    const about = names.get(key)
    if (about === undefined || emails === null) continue
    const { complaint, bounce } = emails.rates
    const ofComplaints = complaintTone(emails)
    const ofBounces = bounceTone(emails)
    const link = { to: `/domains/${key}/deliverability`, label: 'See its deliverability' }
    if (ofComplaints !== null) {
      const limit =
        ofComplaints === 'bad' ? 'Gmail and Yahoo ask for less than 0.3 %.' : 'Gmail asks for less than 0.1 %.'
      const text = `${percentOf(complaint, 2)} of the recipients of the last 7 days complained. ${limit}`
      yield { tone: ofComplaints, about, text, link }
    }
    if (ofBounces !== null) {
      const text = `${percentOf(bounce)} of the emails of the last 7 days bounced. Above 5 % harms the reputation of a sender.`
      yield { tone: ofBounces, about, text, link }
    }
  }
}

function* ofWebhooks({ webhooks, webhookFigures }: Known): Generator<Finding> {
  const figures = new Map(webhookFigures.map(({ key, webhooks: counted }) => [key, counted]))
  for (const { id, url, status, disabledReason } of webhooks) {
    const about = url
    if (status === 'disabled') {
      // A webhook that a person disabled needs no attention.
      if (disabledReason === 'manual' || disabledReason === null) continue
      const why = disabledReason === 'gone' ? 'its endpoint answered 410' : 'every attempt failed for days'
      const text = `It is disabled, because ${why}. Events that came meanwhile were not sent.`
      yield { tone: 'bad', about, text, link: { to: `/webhooks/${id}`, label: 'Enable and recover' } }
      continue
    }
    const counted = figures.get(id)
    const tone = counted == null ? null : failureTone(counted)
    if (counted == null || tone === null) continue
    const text = `${percentOf(counted.rates.failure, 0)} of ${countOf(counted.attempts)} attempts since yesterday failed.`
    yield { tone, about, text, link: { to: `/webhooks/${id}`, label: 'See its deliveries' } }
  }
}

type EmailFigures = NonNullable<Ranked['emails']>
type WebhookFigures = NonNullable<Ranked['webhooks']>
type Tone = Finding['tone'] | null

function complaintTone({ sent, rates }: EmailFigures): Tone {
  return sent < minRecipients ? null : toneOf(rates.complaint, complaints)
}

function bounceTone({ sent, rejected, rates }: EmailFigures): Tone {
  return sent + rejected < minRecipients ? null : toneOf(rates.bounce, bounces)
}

function failureTone({ attempts, rates }: WebhookFigures): Tone {
  return attempts < minAttempts ? null : toneOf(rates.failure, failures)
}

function toneOf(share: number | null, { bad, warn }: { bad: number; warn: number }): Tone {
  if (share === null || share < warn) return null
  return share >= bad ? 'bad' : 'warn'
}
