import type { CampaignStatistics } from '../../../contract/campaign-statistics.ts'
import type { Person } from './campaign-stage.ts'
import { judgeMail, type MailEvidence, type Recipient, wrongDelays } from './mail-verdict.ts'

/** All that is known of campaigns once they have ended and the service had its time to recover. */
export type CampaignEvidence = {
  /** Of the emails of all campaigns. Its ledger and `recipientsOf` are not looked at. */
  mail: MailEvidence
  campaigns: readonly CampaignEnd[]
}

export type CampaignEnd = {
  id: string
  status: string
  people: readonly Person[]
  /** `recipients` of the response of `GET /v1/campaigns/:id`. */
  shown: number
  /** The response of `GET …/statistics`. */
  statistics: Pick<CampaignStatistics, keyof CampaignStatistics>
  /** The recipients that `GET …/recipients` lists. */
  recipients: readonly { subscriberId: string; status: string; reason: string | null }[]
  /** The events of the campaign that `GET /v1/events` lists. */
  events: readonly { type: string; recipients: unknown }[]
  /** How many recipients were still tried as it was completed, by the history of their emails. */
  deferred: { least: number; most: number }
}

/**
 * Returns the faults in words. There are none when each person got the campaign 0 or 1 times as they should, a second
 * time only where a reply was lost, when each refusal is in the history of its email, when every count is exact, and
 * when both events are there once.
 */
export function judgeCampaigns({ mail, campaigns }: CampaignEvidence): string[] {
  const copies = new Map<string, number>()
  for (const address of mail.copies.flatMap(({ recipients }) => recipients)) {
    copies.set(address, (copies.get(address) ?? 0) + 1)
  }
  const emails = new Map(mail.recipients.map((recipient) => [recipient.address, recipient]))
  return [
    ...judgeMail(sentOf(mail, campaigns)),
    ...wrongDelays(mail.recipients.filter(({ status }) => withheld.includes(status))),
    ...campaigns.flatMap((campaign) => [
      ...wrongPeople(campaign, { copies, emails }),
      ...wrongCounts(campaign, emails),
      ...wrongEvents(campaign),
    ]),
  ]
}

/** Those that were not sent on purpose: the campaign was canceled, or the person is not to be written to any more. */
const withheld = ['suppressed', 'canceled', 'failed']

/** The emails that had to be sent, with the people who get one as those who were promised one. */
function sentOf(mail: MailEvidence, campaigns: readonly CampaignEnd[]): MailEvidence {
  const left = new Set(mail.recipients.filter(({ status }) => withheld.includes(status)).map(({ address }) => address))
  const marks = new Map(
    campaigns
      .flatMap(({ people }) => people)
      .filter(({ fate }) => fate !== 'nothing')
      .map(({ address, fate }) => [address, fate === 'gets' ? ('acknowledged' as const) : ('unknown' as const)]),
  )
  return {
    ...mail,
    ledger: { ...mail.ledger, marks },
    recipientsOf: (mark) => [mark],
    emails: mail.emails.filter(({ mark }) => !left.has(mark)),
    recipients: mail.recipients.filter(({ address }) => !left.has(address)),
    copies: mail.copies.filter(({ recipients }) => !recipients.some((address) => left.has(address))),
  }
}

type Sent = { copies: ReadonlyMap<string, number>; emails: ReadonlyMap<string, Recipient> }

function* wrongPeople({ people, recipients }: CampaignEnd, { copies, emails }: Sent): Generator<string> {
  const told = new Map(recipients.map((recipient) => [recipient.subscriberId, recipient]))
  for (const { subscriberId, address, fate, outcome } of people) {
    const times = copies.get(address) ?? 0
    const { status, reason } = told.get(subscriberId) ?? { status: 'not listed', reason: null }
    const ended = status === 'skipped' ? reason : status
    if (outcome !== null && ended !== outcome) yield `${address} is ${ended}, and should be ${outcome}`
    if (fate === 'gets' && times === 0) yield `${address} got nothing, and is ${status}`
    if (fate === 'nothing' && times > 0) yield `${address} should get nothing, and got ${times}`
    if (status !== 'handed_over' && times > 0) yield `${address} is ${status}, and got ${times}`
    if (status === 'handed_over' && times === 0 && !isWithheld(emails.get(address))) {
      yield `${address} is handed over, and got nothing`
    }
    if (status === 'queued') yield `${address} is still queued`
  }
  const known = new Set(people.map(({ subscriberId }) => subscriberId))
  for (const { subscriberId } of recipients) if (!known.has(subscriberId)) yield `${subscriberId} is nobody's recipient`
  if (told.size !== recipients.length) yield 'somebody is listed twice'
}

/** Whether nothing more was sent to a recipient after an attempt that failed, or that its process did not survive. */
function isWithheld(email: Recipient | undefined): boolean {
  if (email === undefined) return false
  return email.status === 'failed' || (email.deferred > 0 && withheld.includes(email.status))
}

function* wrongCounts(
  { id, people, shown, statistics, recipients }: CampaignEnd,
  emails: ReadonlyMap<string, Recipient>,
): Generator<string> {
  const count = (status: string, reason?: string) =>
    recipients.filter((one) => one.status === status && (reason === undefined || one.reason === reason)).length
  const { skipped } = statistics
  const counts: readonly (readonly [string, number, number])[] = [
    ['recipients that are shown', shown, recipients.length],
    ['recipients', statistics.recipients, recipients.length],
    ['waiting', statistics.waiting, 0],
    ['queued', statistics.queued, 0],
    ['handed over', statistics.handedOver, count('handed_over')],
    ['deferred', statistics.deferred, 0],
    ['failed', statistics.failed, count('failed')],
    ['left', skipped.left, count('skipped', 'left')],
    ['unsubscribed', skipped.unsubscribed, count('skipped', 'unsubscribed')],
    ['suppressed', skipped.suppressed, count('skipped', 'suppressed')],
    ['canceled', statistics.canceled, count('canceled')],
    ['sent', statistics.emails.sent, people.filter(({ address }) => emails.get(address)?.status === 'accepted').length],
  ]
  for (const [what, counted, there] of counts) {
    if (counted !== there) yield `${id} counts ${counted} as ${what}, and there are ${there}`
  }
  const { left, unsubscribed, suppressed } = skipped
  const sum = statistics.handedOver + statistics.failed + left + unsubscribed + suppressed + statistics.canceled
  if (sum !== statistics.recipients)
    yield `${id} has ${statistics.recipients} recipients, and its counts add up to ${sum}`
}

function* wrongEvents({ id, status, statistics, events, deferred: tried }: CampaignEnd): Generator<string> {
  const { recipients: total, handedOver: sent } = statistics
  const began = { type: 'campaign.sent', recipients: { total } }
  const { left, unsubscribed, suppressed } = statistics.skipped
  const skipped = left + unsubscribed + suppressed
  const { deferred = 0 } = Object(events.at(-1)?.recipients)
  const ended = { type: 'campaign.completed', recipients: { total, sent, failed: total - sent, deferred, skipped } }
  const whileSending = total > 0 ? [began] : []
  const expected = JSON.stringify(status === 'completed' ? [began, ended] : whileSending)
  if (status === 'completed' && (deferred < tried.least || deferred > tried.most)) {
    yield `${id} was told to have ${deferred} deferred, and there were ${tried.least} to ${tried.most}`
  }
  const told = JSON.stringify(events)
  // One that is canceled before it starts has its list, or a part of it, and no event.
  if (told !== expected && !(status === 'canceled' && told === '[]' && sent === 0)) {
    yield `${id} is ${status}, and told of by ${told} instead of ${expected}`
  }
  if (status !== 'completed' && status !== 'canceled') yield `${id} is still ${status}`
}
