import pg from 'pg'
import type { Email, EmailAttachment, EmailDetails } from '../../contract/email-resource.ts'
import type { AcceptedEmail, EmailListQuery, SendEmail } from '../../contract/emails.ts'
import type { Page } from '../../contract/pagination.ts'
import { afterCommit, type Handle, inTransaction, type Trx } from '../database/connection.ts'
import type { Clock } from '../lib/clock.ts'
import { createCoalescing } from '../lib/request-coalescing.ts'
import type { StreamedText } from '../lib/streamed-text.ts'
import { mapYielding } from '../lib/yielding.ts'
import type { Outbox } from '../outbox/append.ts'
import type { EmailQueue } from '../queue/email-queue.ts'
import { brokenRules, DomainError, invalidRequest } from '../shared/errors.ts'
import type { Lane } from '../shared/lanes.ts'
import type { Scope } from '../shared/scope.ts'
import { countRecipients } from '../statistics/count-recipients.ts'
import type { TemplateService } from '../templates/service.ts'
import { cancelEmails, deleteEmails, lockUnbegun } from './campaign-queries.ts'
import { createEligibility, type EligibilityMeans, type SendingScope } from './eligibility.ts'
import { fillTemplates } from './fill-templates.ts'
import { insertEmails } from './insert-queries.ts'
import { listEmails } from './listing.ts'
import { beginEmail, countsOf, eventsOf, type NewEmail } from './new-email.ts'
import { copyContent } from './queries.ts'
import { getAttachment, getEmail } from './reading.ts'
import { readEnded } from './resending.ts'
import { cancelScheduled, reschedule } from './scheduled.ts'
import { type ReadEmail, readEmail } from './validate-email.ts'

export type { SendingScope } from './eligibility.ts'

/** An email of a batch, or the error when it does not match the schema. */
export type BatchItem = SendEmail | DomainError

/** An email of a campaign to one person. */
export type CampaignEmail = {
  /** Made before, because the link to unsubscribe holds it. */
  id: string
  /** Null: a test of the campaign. */
  campaignId: string | null
  /** The variant that it tests. Default: none. */
  variant?: number | null
  email: ReadEmail
}

/** The result of an email of a campaign: stored, withheld from its recipient, or refused with an error. */
export type CampaignEmailResult = NewEmail | { withheld: 'suppressed' | 'unsubscribed' } | DomainError

/** Use cases for emails. Throws DomainErrors. Every call is limited to one mode of one account. */
export type EmailService = {
  /**
   * Stores an email with its recipients, and queues it for sending. With a test key only recipients of the simulator
   * are processed. Recipients on the suppression list get nothing, and `email.failed` is emitted for them at once.
   * Throws `validation_error` or `rule_violation` with all errors, `audience_not_found`, and for a live key
   * `domain_not_verified` and `public_url_needed`.
   */
  send(handle: Handle, sender: SendingScope, email: SendEmail): Promise<AcceptedEmail>
  /**
   * Sends several emails in one transaction. Returns the results in the same order. Unless `isPermissive`, it throws
   * when one email is refused, and stores none.
   */
  sendBatch(
    handle: Handle,
    sender: SendingScope,
    batch: { items: readonly BatchItem[]; isPermissive: boolean },
  ): Promise<(AcceptedEmail | DomainError)[]>
  /** Returns emails, newest first: see `listEmails`. */
  list(handle: Handle, scope: Scope, query: EmailListQuery): Promise<Page<Email>>
  /** Returns an email with its content: see `getEmail`. */
  get(handle: Handle, scope: Scope, id: string, enterLarge?: () => Promise<void>): Promise<EmailDetails>
  /** Returns an attachment with its content: see `getAttachment`. */
  getAttachment(
    handle: Handle,
    scope: Scope,
    place: { id: string; index: number },
    enterLarge?: () => Promise<void>,
  ): Promise<Omit<EmailAttachment, 'content'> & { content: string | StreamedText }>
  /**
   * Sends a new email with the content and the recipients of one that has ended. Throws `not_found`, `email_not_ended`
   * and what `send` throws for an email that may not be sent now.
   */
  resend(handle: Handle, sender: SendingScope, id: string): Promise<AcceptedEmail>
  /** Returns why no email like this one may be sent now, or null: the errors that `sendOfCampaign` returns. */
  judgeCampaign(handle: Handle, sender: SendingScope, email: ReadEmail): Promise<DomainError | null>
  /**
   * Stores and queues emails of a campaign, in the lane `bulk`. Returns the results in the same order. The
   * error of an email that may not be sent is `audience_not_found`, `domain_not_verified` or `public_url_needed`.
   */
  sendOfCampaign(trx: Trx, sender: SendingScope, emails: readonly CampaignEmail[]): Promise<CampaignEmailResult[]>
  /**
   * Does the same for emails that the service writes to people for an account, in the lane given.
   */
  sendOfAccount(
    trx: Trx,
    sender: SendingScope,
    emails: readonly CampaignEmail[],
    options: { lane: Lane },
  ): Promise<CampaignEmailResult[]>
  /**
   * Deletes those of the emails that no attempt was begun for, as if they had not been made. Returns their ids. A
   * worker that has claimed one finds nothing to do.
   */
  takeBack(trx: Trx, accountId: string, emailIds: readonly string[]): Promise<string[]>
  /** Cancels those of the emails that no attempt was begun for. Returns their ids. */
  cancelQueued(trx: Trx, accountId: string, emailIds: readonly string[]): Promise<string[]>
  /** Moves a scheduled email to another time. Throws `email_not_scheduled` once it was started, ended or canceled. */
  reschedule(handle: Handle, scope: Scope, id: string, at: Date): Promise<Email>
  /** Cancels a scheduled email. Throws `email_not_scheduled` once it was started, ended or canceled. */
  cancel(handle: Handle, scope: Scope, id: string): Promise<Email>
}

export type EmailServiceOptions = EligibilityMeans & {
  clock: Clock
  outbox: Outbox
  queue: Pick<EmailQueue, 'put' | 'remove'>
  /** Called after a commit that added emails to the queue. */
  wake: (lane: Lane) => void
  /** Renders the templates of emails. */
  renderTemplates: TemplateService['render']
  /** Returns the trace of the current request, which is stored with the events of the email, or null. */
  traceparent: () => string | null
}

type Filling = {
  handle: Handle
  sender: SendingScope
  items: readonly (ReadEmail | DomainError)[]
  pathOf: (index: number) => string
}

/** A request to send one email. */
type Asked = { handle: Handle; sender: SendingScope; email: ReadEmail }

type Placed = {
  /** Returns the path of the email with an index in the request. */
  pathOf: (index: number) => string
  /** Called with every refusal. May throw. */
  refuse: (refusal: DomainError, path: string) => void
}

export function createEmailService(options: EmailServiceOptions): EmailService {
  const { clock, outbox, queue, wake, traceparent } = options
  // One function for each, so that a transaction calls it once.
  const wakeSingle = () => wake('single')
  const wakeBulk = () => wake('bulk')

  /** Stores the emails that may be sent. Returns the results in the order of `read`. */
  async function accept(
    trx: Trx,
    sender: SendingScope,
    read: readonly (ReadEmail | DomainError)[],
    { pathOf, refuse }: Placed,
  ): Promise<(NewEmail | DomainError)[]> {
    const judge = await createEligibility(trx, options, { sender, emails: read.filter(isAccepted) })
    const at = clock.now()
    const results = read.map((email, index) => {
      const path = pathOf(index)
      const refusal = isRefusal(email) ? email : judge.refusalOf(email, path)
      if (refusal !== null) refuse(refusal, path)
      return isRefusal(email) ? email : (refusal ?? beginEmail(email, { sender, judge, at }))
    })
    await store(trx, sender, results.filter(isAccepted), { at, lane: 'single' })
    return results
  }

  async function sendEach(
    trx: Trx,
    sender: SendingScope,
    emails: readonly CampaignEmail[],
    { lane }: { lane: Lane },
  ): Promise<CampaignEmailResult[]> {
    const judge = await createEligibility(trx, options, { sender, emails: emails.map(({ email }) => email) })
    const at = clock.now()
    const results = emails.map(({ id, campaignId, variant = null, email }): CampaignEmailResult => {
      const refusal = judge.refusalOf(email, 'campaign')
      if (refusal !== null) return refusal
      const withheld = email.recipients.map((recipient) => judge.withheldFrom(recipient, email)).find(Boolean)
      return withheld ? { withheld } : beginEmail(email, { sender, judge, at, id, campaignId, variant })
    })
    const stored = results.filter((result) => 'content' in result)
    await store(trx, sender, stored, { at, lane })
    return results
  }

  async function store(
    trx: Trx,
    sender: SendingScope,
    emails: readonly NewEmail[],
    { at, lane }: { at: Date; lane: Lane },
  ): Promise<void> {
    if (emails.length === 0) return
    const { accountId } = sender
    await insertEmails(trx, sender, emails, at)
    await countRecipients(
      trx,
      emails.flatMap((email) => countsOf(email, sender, at)),
    )
    await outbox.append(
      trx,
      sender,
      emails.flatMap((email) => eventsOf(email, at)),
    )
    const waiting = emails.filter((email) => email.waits)
    if (waiting.length === 0) return
    await queue.put(
      trx,
      waiting.map(({ id, content }) => ({ emailId: id, accountId, dueAt: content.scheduledAt, lane })),
    )
    const isDue = waiting.some(({ content }) => content.scheduledAt === null)
    if (isDue) afterCommit(trx, lane === 'single' ? wakeSingle : wakeBulk)
  }

  function acceptAsked(asked: readonly [Asked, ...Asked[]]): Promise<(NewEmail | DomainError)[]> {
    const [{ handle, sender }] = asked
    const emails = asked.map(({ email }) => email)
    const placed: Placed = { pathOf: () => 'body', refuse: () => undefined }
    return inTransaction(handle, (trx) => accept(trx, sender, emails, placed))
  }

  // A transaction costs more than inserting a small email, so concurrent requests of a sender share one.
  const coalescing = createCoalescing<Asked, NewEmail | DomainError>({
    limit: 100,
    work: acceptAsked,
    isOfOne: isOfContent,
  })

  /** Puts rendered templates in their place. Before the transaction, since rendering takes its time. */
  function fill({ handle, sender, items, pathOf }: Filling): Promise<(ReadEmail | DomainError)[]> {
    return fillTemplates(items, pathOf, (uses) => options.renderTemplates(handle, sender.accountId, uses))
  }

  return {
    async send(handle, sender, email) {
      const judged = await judgeForm(email, { now: clock.now(), path: 'body' })
      const [read = judged] = await fill({ handle, sender, items: [judged], pathOf: () => 'body' })
      if (isRefusal(read)) throw read
      const asked = { handle, sender, email: read }
      const group = `${sender.accountId} ${sender.mode} ${traceparent()}`
      const result = isSharing(asked) ? await coalescing.add(group, asked) : (await acceptAsked([asked]))[0]
      if (result === undefined || isRefusal(result)) throw result
      return { id: result.id, status: result.status }
    },
    async sendBatch(handle, sender, { items, isPermissive }) {
      const now = clock.now()
      const pathOf = (index: number) => `body.emails[${index}]`
      const judged = await mapYielding(items, (item, index) =>
        isRefusal(item) ? item : judgeForm(item, { now, path: pathOf(index) }),
      )
      const read = await fill({ handle, sender, items: judged, pathOf })
      if (!isPermissive) throwAllDetails(read.filter(isRefusal))
      return inTransaction(handle, async (trx) => {
        const results = await accept(trx, sender, read, { pathOf, refuse: isPermissive ? () => undefined : throwNamed })
        return results.map((result) => (isRefusal(result) ? result : { id: result.id, status: result.status }))
      })
    },
    list: listEmails,
    get: getEmail,
    getAttachment,
    async resend(handle, sender, id) {
      return inTransaction(handle, async (trx) => {
        const email = await readEnded(trx, sender, id)
        const placed: Placed = { pathOf: () => 'email', refuse: () => undefined }
        const [result] = await accept(trx, sender, [email], placed)
        if (result === undefined || isRefusal(result)) throw result
        await copyContent(trx, { from: id, to: result.id })
        return { id: result.id, status: result.status }
      })
    },
    async judgeCampaign(handle, sender, email) {
      const judge = await createEligibility(handle, options, { sender, emails: [email] })
      return judge.refusalOf(email, 'campaign')
    },
    sendOfCampaign: (trx, sender, emails) => sendEach(trx, sender, emails, { lane: 'bulk' }),
    sendOfAccount: sendEach,
    async takeBack(trx, accountId, emailIds) {
      const locked = await lockUnbegun(trx, { accountId, emailIds })
      const ids = locked.map(({ id }) => id)
      await deleteEmails(trx, accountId, locked)
      await queue.remove(trx, ids)
      return ids
    },
    async cancelQueued(trx, accountId, emailIds) {
      const ids = (await lockUnbegun(trx, { accountId, emailIds })).map(({ id }) => id)
      const detail = 'The campaign was canceled before the email was sent.'
      await cancelEmails(trx, { accountId, emailIds: ids }, { at: clock.now(), detail })
      await queue.remove(trx, ids)
      return ids
    },
    reschedule: (handle, scope, id, to) => reschedule(options, handle, scope, { id, to }),
    cancel: (handle, scope, id) => cancelScheduled(options, handle, scope, id),
  }
}

function isRefusal(value: unknown): value is DomainError {
  return value instanceof DomainError
}

function isAccepted<T extends object>(value: T | DomainError): value is T {
  return !isRefusal(value)
}

async function judgeForm(email: SendEmail, place: { now: Date; path: string }): Promise<ReadEmail | DomainError> {
  const read = await readEmail(email, place)
  if (read.faults === null) return read.email
  return read.faults.some(({ isOfForm }) => isOfForm) ? invalidRequest(read.faults) : brokenRules(read.faults)
}

/** Most characters of an email that shares a transaction, so that a batch needs little memory. */
const sharingLength = 65_536

/** Returns true when a request may share a transaction: it has none of its own, and the email is small. */
function isSharing({ handle, email: { html, text, attachments } }: Asked): boolean {
  const length = (html?.length ?? 0) + (text?.length ?? 0)
  return !handle.isTransaction && attachments.length === 0 && length <= sharingLength
}

/** Returns true when PostgreSQL refused the data (classes 22, 23 and 54), so that the transaction was rolled back. */
function isOfContent(error: unknown): boolean {
  return error instanceof pg.DatabaseError && /^(22|23|54)/.test(error.code ?? '')
}

/** Throws the error of one email of a batch, with the path of the email. */
function throwNamed({ code, message, details }: DomainError, path: string): never {
  throw new DomainError(code, `${path}: ${message}`, { details: [...details] })
}

/** Throws one error with the details of all refused emails of a batch, if there are any. */
function throwAllDetails(refusals: readonly DomainError[]): void {
  const [first] = refusals
  if (first === undefined) return
  if (first.code !== 'validation_error' && first.code !== 'rule_violation') throw first
  const details = refusals.flatMap((refusal) => refusal.details)
  throw refusals.some(({ code }) => code === 'validation_error') ? invalidRequest(details) : brokenRules(details)
}
