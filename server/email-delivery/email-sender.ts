import type { Db } from '../database/connection.ts'
import type { Clock } from '../lib/clock.ts'
import type { Composer } from '../message/compose.ts'
import type { DkimSigner } from '../message/dkim.ts'
import type { CopyRef, MailTokens } from '../message/tokens.ts'
import type { Outcome, Transport } from '../smtp/transport.ts'
import { createHandOverOrder, type Turn } from './hand-over-order.ts'
import { createLargeEmailAdmission } from './large-email-admission.ts'
import { type Content, loadContent, sizeOfContent } from './load-content.ts'
import type { RecipientFact } from './outcomes.ts'
import { factsOfObstacles, obstructedOf, type Planned } from './plan.ts'
import type { EmailDomain } from './send-refusal.ts'
import { type DueEmail, type DueRecipient, readDomain, type StartedRecipient } from './sending-state.ts'
import type { Signers } from './signers.ts'

export type EmailSenderMeans = {
  db: Db
  clock: Clock
  transport: Transport
  composer: Composer
  signers: Signers
  tokens: Pick<MailTokens, 'returnPath'>
  /** Connections at most, in all and to one host: large emails are given half of them. */
  concurrency: number
  connectionsPerHost: number
  /** Told of what went wrong on our side. */
  onError: (error: unknown) => void
}

export type SendResult = {
  facts: RecipientFact[]
  /** Recipients nothing was sent to because of us: they are tried again soon. */
  released: readonly StartedRecipient[]
  /** Recipients that wait for a server that can be used; null: none. */
  waiting: RecipientsForLater | null
}

/** Until when; `in-place`: for the one way out there is, where they were in the queue. */
export type RecipientsForLater = { recipients: readonly StartedRecipient[]; until: Date | 'in-place' }

/** What the conversations of one email share, where it is small: its content, and the message made of it. */
export type Draft = { small: Content | undefined; message?: Promise<Buffer> }

export type EmailSender = {
  /**
   * Makes the message and holds the conversation. Small messages for one destination are handed to the transport in
   * the order of these calls. Never throws.
   */
  converse(planned: Planned, draft: Draft, signal: AbortSignal): Promise<SendResult>
}

/** What emails larger than those that are read many at a time take of the memory at once. Bytes. */
const largeBytes = 128 * 1024 * 1024
/** How often a content is in memory while it is made into a message: read, encoded, and put together. */
const copies = 4

export function createEmailSender(means: EmailSenderMeans): EmailSender {
  const { db, clock, transport, composer, signers, tokens, concurrency, connectionsPerHost, onError } = means
  const half = (connections: number) => Math.max(1, Math.floor(connections / 2))
  const large = createLargeEmailAdmission({
    bytes: largeBytes,
    emails: half(concurrency),
    perDestination: half(connectionsPerHost),
    // With those inside, fewer than the worker may hold and still claim.
    waiting: concurrency,
  })
  const order = createHandOverOrder()

  /** It waits for room in memory, and nothing waits for it. */
  async function sendLarge(planned: Planned, draft: Draft, signal: AbortSignal, turn: Turn): Promise<SendResult> {
    turn.pass()
    const { email, destination, recipients } = planned
    const bytes = copies * (await sizeOfContent(db, email.id))
    // Its place is another's while it waits.
    planned.leave()
    const leave = await large.enter({ destination, bytes }, signal)
    if (leave === null) return released(planned)
    try {
      // It may have waited for long.
      const domain = email.domain && (await readDomain(db, email.domain.id))
      if (obstructedOf(domain, recipients).length > 0) return hindered(planned, domain)
      return await send(planned, draft, signal, turn)
    } finally {
      leave()
    }
  }

  async function send(planned: Planned, draft: Draft, signal: AbortSignal, turn: Turn): Promise<SendResult> {
    const { email, destination, recipients } = planned
    const signer = email.domain && (await signers.of(email.domain.id))
    if (email.domain === null || signer === null) return hindered(planned, null)
    const content = draft.small ?? (await loadContent(db, email.id))
    // Gone meanwhile: there is nothing to be written down either.
    if (content === undefined) return { facts: [], released: [], waiting: null }
    if (signal.aborted) return released(planned)
    const message = await compose(planned, draft, { content, signer }).catch(onError)
    if (!message) return unmakeable(planned)
    await turn.come
    const mailFrom = tokens.returnPath(copyOf(planned), email.domain.returnPath)
    const sending = transport.send({ destination, mailFrom, recipients, message }, signal)
    turn.pass()
    planned.leave()
    const outcomes = await sending
    return conversedOf(planned, outcomes, signal.aborted)
  }

  function conversedOf(planned: Planned, outcomes: readonly Outcome[], isStopping: boolean): SendResult {
    const { email, recipients } = planned
    const facts: RecipientFact[] = []
    const released: StartedRecipient[] = []
    const waiting: StartedRecipient[] = []
    for (const [index, recipient] of recipients.entries()) {
      const about = { emailId: email.id, position: recipient.position, at: clock.now() }
      const outcome = outcomes[index] ?? lost
      if (isStopping && isUntried(outcome)) {
        released.push(begunOf(email, recipient))
      } else if (outcome.kind === 'deferred' && outcome.unusable) {
        waiting.push(begunOf(email, recipient))
        // That the one way out is away is the operator's to mend, and told in the log.
        if (transport.only === null) facts.push({ ...outcome, kind: 'waiting', ...about })
      } else {
        facts.push({ ...outcome, ...about })
      }
    }
    return { facts, released, waiting: waiting.length === 0 ? null : { recipients: waiting, until: untilOf(planned) } }
  }

  function untilOf({ destination }: Planned): Date | 'in-place' {
    if (transport.only !== null) return 'in-place'
    return transport.unusable(destination)?.until ?? new Date(clock.now().getTime() + unusablePauseMs)
  }

  /** Made once for all conversations of a small email, or for each recipient where the copies differ. */
  function compose(
    planned: Planned,
    draft: Draft,
    { content, signer }: { content: Content; signer: DkimSigner },
  ): Promise<Buffer> {
    const { email, personal } = planned
    const parts = {
      email,
      content,
      attachments: content.attachments,
      recipients: email.recipients,
      signer,
    }
    if (personal) return composer.compose(parts, copyOf(planned).position)
    // Who waits must not keep a large one.
    if (draft.small === undefined) return composer.compose(parts, null)
    draft.message ??= composer.compose(parts, null)
    return draft.message
  }

  function unmakeable({ email, recipients }: Planned): SendResult {
    const failed = { kind: 'failed' as const, reason: faultOfOurs, emailId: email.id, at: clock.now() }
    return { facts: recipients.map(({ position }) => ({ ...failed, position })), released: [], waiting: null }
  }

  function hindered({ email, recipients }: Planned, domain: EmailDomain | null): SendResult {
    return {
      facts: factsOfObstacles(email, obstructedOf(domain, recipients), clock.now()),
      released: [],
      waiting: null,
    }
  }

  return {
    async converse(planned, draft, signal) {
      const turn = order.join(planned.destination)
      try {
        return await (draft.small === undefined ? sendLarge : send)(planned, draft, signal, turn)
      } catch (error) {
        onError(error)
        return released(planned)
      } finally {
        turn.pass()
        planned.leave()
      }
    },
  }
}

/** Nothing was sent, and that is nobody's fault but ours. */
function released({ email, recipients }: Planned): SendResult {
  return { facts: [], released: recipients.map((one) => begunOf(email, one)), waiting: null }
}

/** A personal one is of its only recipient. */
function copyOf({ email, personal, recipients }: Planned): CopyRef {
  return { emailId: email.id, position: personal ? (recipients[0]?.position ?? null) : null }
}

/** For what could not be sent to a destination that was used meanwhile. Milliseconds. */
const unusablePauseMs = 5_000

const faultOfOurs = 'The message could not be made because of a fault of the service. Ask its operator.'

/** For a recipient a transport says nothing of, which it never does. */
const lost: Outcome = {
  kind: 'deferred',
  reason: faultOfOurs,
  reply: null,
  host: null,
  unknown: false,
  congested: false,
  unusable: false,
}

function begunOf({ id: emailId }: DueEmail, { position, attempts }: DueRecipient): StartedRecipient {
  return { emailId, position, attempt: attempts + 1 }
}

/** Whether a server neither has the message nor has said anything of the recipient. */
function isUntried(outcome: Outcome): boolean {
  return outcome.kind === 'deferred' && !outcome.unknown && (outcome.unusable || outcome.reply === null)
}
