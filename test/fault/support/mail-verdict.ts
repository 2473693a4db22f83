import type { Ledger } from './ledger.ts'
import type { Arrival } from './recorder.ts'

/** All that is known of emails once the fault is over and the service had its time to recover. */
export type MailEvidence = {
  /** The emails that were sent over the API. A mark is the subject of its email. */
  ledger: Ledger
  /** To whom an email with this mark was sent. */
  recipientsOf: (mark: string) => readonly string[]
  emails: readonly { mark: string; status: string; messageId: string; hasJob: boolean }[]
  /** No two emails have a recipient in common. */
  recipients: readonly Recipient[]
  events: readonly { id: string; type: string; to: string }[]
  /** The deliveries to a webhook that is subscribed to all of these events. */
  arrivals: readonly Arrival[]
  /** Every message the mail server had whole, whether or not its answer reached anybody. */
  copies: readonly { messageId: string; recipients: readonly string[] }[]
}

export type Recipient = {
  mark: string
  address: string
  status: string
  /** Entries `resent` in its timeline: it was sent to again, because the result of an attempt was not known. */
  resent: number
  /** Entries `deferred` in its timeline: a server refused it for now. */
  deferred: number
  /** How often the mail server refused it for now. */
  refused: number
  /** Entries `unknown` in its timeline: the result of an attempt is not known. */
  unknown: number
  /** Whether it is of a campaign that may have been paused. */
  wasPaused: boolean
  /** How often a process died while it was sending to it; null: not known. */
  lost: number | null
}

/**
 * Returns the faults in words. There are none when every email that was accepted reached all its recipients, a second
 * time only where a reply had been lost, with the same Message-ID and an entry in the history, when there is one event
 * for each recipient, and one of the delay where there was any, and when nothing is stuck.
 */
export function judgeMail(evidence: MailEvidence): string[] {
  return [
    ...wrongEmails(evidence),
    ...wrongRecipients(evidence),
    ...wrongDelays(evidence.recipients),
    ...wrongEvents(evidence),
    ...wrongCopies(evidence),
  ]
}

/**
 * Tells of entries in the history that nothing was the cause of. A process writes `deferred` when a mail server refused a
 * recipient, at most once for each refusal. It writes `unknown` when it finds that another died while it was sending to a
 * recipient whose campaign is paused now. Nothing else is a reason to delay a recipient: not the death of a process or of
 * PostgreSQL, and not SIGTERM, where the mail server answers each message in time and drops no connection.
 */
export function* wrongDelays(recipients: readonly Recipient[]): Generator<string> {
  for (const { address, deferred, refused, unknown, wasPaused, lost } of recipients) {
    if (deferred > refused) yield `${address} was refused ${refused} times, and its history has ${deferred}`
    if (unknown > 0 && !wasPaused) yield `${address} was lost ${unknown} times in a pause, and there was none`
    if (lost !== null && unknown > lost) yield `${address} was lost ${unknown} times in a pause, and ${lost} in all`
  }
}

function* wrongEmails({ ledger, recipientsOf, emails, recipients }: MailEvidence): Generator<string> {
  const byMark = Map.groupBy(emails, ({ mark }) => mark)
  const stored = Map.groupBy(recipients, ({ mark }) => mark)
  for (const [mark, fate] of ledger.marks) {
    const count = byMark.get(mark)?.length ?? 0
    if (fate === 'acknowledged' && count === 0) yield `${mark} was acknowledged, and is lost`
    if (count > 1) yield `${mark} was stored ${count} times`
    if (count === 0) continue
    const addresses = new Set(stored.get(mark)?.map(({ address }) => address))
    for (const address of recipientsOf(mark)) if (!addresses.has(address)) yield `${mark} has lost ${address}`
  }
  for (const { mark, status, hasJob } of emails) {
    if (!ledger.marks.has(mark)) yield `${mark} was sent by nobody`
    if (status !== 'sent') yield hasJob ? `${mark} is still ${status}` : `${mark} is ${status} without a job`
    else if (hasJob) yield `${mark} was sent and still has a job`
  }
}

function* wrongRecipients({ recipients, copies }: MailEvidence): Generator<string> {
  const got = countOf(copies.flatMap((copy) => copy.recipients))
  for (const { address, status, resent, deferred, refused, unknown, lost } of recipients) {
    if (status !== 'accepted') yield `${address} is ${status}`
    const times = got.get(address) ?? 0
    if (times === 0) yield `${address} was sent nothing`
    if (times > 1 + resent) yield `${address} was sent ${times} copies, and ${resent} are told of in its history`
    // Each attempt ends with a refusal or a copy at most, and is written down as such: `deferred`, or `sent` at last. One
    // that is not, because its process died or could not write it before it ended, is repeated, and `resent` says so.
    else if (times > 0 && refused + times > 1 + deferred + resent) {
      yield `${address} was refused ${refused} times and sent ${times} copies, and its history has ${deferred} and ${1 + resent}`
    }
    // What was lost in a pause is sent again after it.
    if (unknown > resent) yield `${address} was lost ${unknown} times in a pause, and sent again ${resent} times`
    if (lost !== null && resent !== lost) {
      yield `${address} is said to be sent to again ${resent} times, and ${lost} answers were lost`
    }
  }
}

function* wrongEvents({ recipients, events, arrivals }: MailEvidence): Generator<string> {
  const told = Map.groupBy(events, ({ to }) => to)
  for (const { address, deferred, unknown } of recipients) {
    const types = (told.get(address)?.map(({ type }) => type) ?? []).toSorted()
    // Written in the transaction of the first entry that tells of a delay, whatever is killed.
    const expected = deferred + unknown > 0 ? ['email.delivery_delayed', 'email.sent'] : ['email.sent']
    if (types.join() !== expected.join()) yield `${address} is told of by ${types.join(', ') || 'nothing'}`
  }
  const taken = new Set(arrivals.filter((arrival) => arrival.taken).map(({ eventId }) => eventId))
  for (const { id, to } of events) if (!taken.has(id)) yield `${id} of ${to} was not delivered`
}

function* wrongCopies({ emails, recipients, copies }: MailEvidence): Generator<string> {
  const messageIds = new Map(emails.map(({ mark, messageId }) => [mark, messageId]))
  const marks = new Map(recipients.map(({ address, mark }) => [address, mark]))
  for (const { messageId, recipients: addresses } of copies) {
    for (const address of addresses) {
      const mark = marks.get(address)
      if (mark === undefined) yield `${address} was sent a message that was never taken`
      else if (messageIds.get(mark) !== messageId) yield `${address} was sent a copy of ${mark} as ${messageId}`
    }
  }
}

function countOf(values: readonly string[]): Map<string, number> {
  return new Map([...Map.groupBy(values, (value) => value)].map(([value, same]) => [value, same.length]))
}
