import { setImmediate } from 'node:timers/promises'
import type { Db } from '../database/connection.ts'
import type { Clock } from '../lib/clock.ts'
import { createKeyedSemaphore, createSemaphore } from '../lib/semaphore.ts'
import { startSystemTimer } from '../lib/timer.ts'
import type { Composer } from '../message/compose.ts'
import type { DkimSigner } from '../message/dkim.ts'
import type { CopyRef, MailTokens } from '../message/mail-tokens.ts'
import type { Lane } from '../shared/lanes.ts'
import type { Outcome, Transport } from '../smtp/transport.ts'
import type { BulkPause } from './bulk-pause.ts'
import { factsOfObstacles, obstructedOf, type Planned } from './conversation-plan.ts'
import { createHandOverOrder, type Turn } from './destination-order.ts'
import { type Content, loadContent, sizeOfContent } from './load-content.ts'
import type { RecipientFact } from './recipient-facts.ts'
import type { EmailDomain } from './send-refusal.ts'
import { type DueEmail, type DueRecipient, readDomain, type StartedRecipient } from './sending-queries.ts'
import type { Signers } from './signers.ts'

export type EmailSenderMeans = {
  db: Db
  clock: Clock
  transport: Transport
  composer: Composer
  signers: Signers
  tokens: Pick<MailTokens, 'returnPath'>
  bulkPause: BulkPause
  /** Maximum connections, in total and to one host. Large emails get half of each. */
  concurrency: number
  connectionsPerHost: number
  /** Called with errors of this service, such as a failed query. */
  onError: (error: unknown) => void
}

export type SendResult = {
  facts: RecipientFact[]
  /** Recipients that nothing was sent to for reasons of this service. They are tried again soon. */
  released: readonly StartedRecipient[]
  /** Recipients that wait until their destination can be used; null: none. */
  waiting: RecipientsForLater | null
}

/** Recipients to try later. `in-place`: they wait for the single destination and keep their place in the queue. */
export type RecipientsForLater = { recipients: readonly StartedRecipient[]; until: Date | 'in-place' }

/** The content of a small email and the message made from it, shared by its conversations. */
export type Draft = { small: Content | undefined; message?: Promise<Buffer> }

export type SendSignals = {
  /** Ends the conversation too. */
  stopping: AbortSignal
  /** The email is not to be sent for now: ends every wait, not a conversation. Aborted with `stopping` too. */
  waiting: AbortSignal
}

export type EmailSender = {
  /**
   * Composes the message and holds the conversation. Small messages of a lane for one destination go to the transport in
   * the order of these calls. Never throws.
   */
  converse(planned: Planned, draft: Draft, signals: SendSignals): Promise<SendResult>
}

/** Memory for the large emails of each lane that are being sent. Bytes. */
const largeBytes = { single: 128 * 1024 * 1024, bulk: 32 * 1024 * 1024 }
/** Messages in bulk that are composed at once: enough that one is composed while another is signed in a thread. */
const composedInBulk = 2
/** How long bulk waits for the conversation of an email that is sent singly: a server nearby has replied by then. */
const handedOverMs = 25
/** Copies of a content in memory while its message is made: read, encoded and concatenated. */
const copies = 4

export function createEmailSender(means: EmailSenderMeans): EmailSender {
  const { db, clock, transport, composer, signers, tokens, bulkPause, concurrency, connectionsPerHost, onError } = means
  const half = (connections: number) => Math.max(1, Math.floor(connections / 2))
  /** By destination. Leaves connections for small emails. */
  const largeOf = (lane: Lane) =>
    createKeyedSemaphore({
      permits: largeBytes[lane],
      holders: half(concurrency),
      holdersPerKey: half(connectionsPerHost),
      // Together with the admitted emails, this is below the number that the worker may hold of a lane and still claim.
      waiting: concurrency,
    })
  const large = { single: largeOf('single'), bulk: largeOf('bulk') }
  const order = { single: createHandOverOrder(), bulk: createHandOverOrder() }
  const composing = createSemaphore(composedInBulk)

  /** Sends a large email once there is memory for it. It gives up its turn, so that small emails do not wait for it. */
  async function sendLarge(planned: Planned, draft: Draft, signals: SendSignals, turn: Turn): Promise<SendResult> {
    turn.pass()
    const { email, destination, recipients } = planned
    const bytes = copies * (await sizeOfContent(db, email.id))
    // Releases the permit, so that another email can use it while this one waits.
    planned.leave()
    const leave = await large[planned.lane].acquire({ key: destination, permits: bytes }, signals.waiting)
    if (leave === null) return released(planned)
    try {
      // The domain may have changed during a long wait.
      const domain = email.domain && (await readDomain(db, email.domain.id))
      if (obstructedOf(domain, recipients).length > 0) return obstructedResult(planned, domain)
      return await send(planned, draft, signals, turn)
    } finally {
      leave()
    }
  }

  async function send(planned: Planned, draft: Draft, signals: SendSignals, turn: Turn): Promise<SendResult> {
    const { email, lane, destination, recipients } = planned
    const { stopping, waiting } = signals
    const signer = email.domain && (await signers.of(email.domain.id))
    if (email.domain === null || signer === null) return obstructedResult(planned, null)
    const content = draft.small ?? (await loadContent(db, email.id))
    // The email was deleted meanwhile, so there is nothing to store.
    if (content === undefined) return { facts: [], released: [], waiting: null }
    const message = await composeInTurn(planned, draft, { content, signer }, waiting)
    if (message === 'stopping') return released(planned)
    if (message === 'failed') return composeFailed(planned)
    await turn.come
    if (waiting.aborted) return released(planned)
    const mailFrom = tokens.returnPath(copyOf(planned), email.domain.returnPath)
    const sending = transport.send({ lane, destination, mailFrom, recipients, message, waiting }, stopping)
    turn.pass()
    planned.leave()
    const outcomes = await sending
    return resultOf(planned, outcomes, signals)
  }

  function resultOf(planned: Planned, outcomes: readonly Outcome[], signals: SendSignals): SendResult {
    const { email, recipients } = planned
    const facts: RecipientFact[] = []
    const released: StartedRecipient[] = []
    const waiting: StartedRecipient[] = []
    for (const [index, recipient] of recipients.entries()) {
      const about = { emailId: email.id, position: recipient.position, at: clock.now() }
      const outcome = outcomes[index] ?? missingOutcome
      if (isReleased(outcome, signals)) {
        released.push(startedOf(email, recipient))
      } else if (outcome.kind === 'deferred' && outcome.unusable) {
        waiting.push(startedOf(email, recipient))
        // An unusable single destination is logged instead: the operator has to repair it.
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

  /** Composes the message; one in bulk when it is its turn, and no email that is sent singly is under way. */
  async function composeInTurn(
    planned: Planned,
    draft: Draft,
    parts: { content: Content; signer: DkimSigner },
    signal: AbortSignal,
  ): Promise<Buffer | 'stopping' | 'failed'> {
    const endTurn = planned.lane === 'bulk' ? await composing.acquire() : null
    try {
      if (planned.lane === 'bulk') {
        await bulkPause.over()
        // Other work of the event loop goes before the next message.
        await setImmediate()
      }
      return signal.aborted ? 'stopping' : await compose(planned, draft, parts)
    } catch (error) {
      onError(error)
      return 'failed'
    } finally {
      endTurn?.()
    }
  }

  /** Composes the message: once for all conversations of a small email, or for each recipient if copies differ. */
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
    // A large message is not shared: waiting conversations would keep it in memory.
    if (draft.small === undefined) return composer.compose(parts, null)
    draft.message ??= composer.compose(parts, null)
    return draft.message
  }

  function composeFailed({ email, recipients }: Planned): SendResult {
    const failed = { kind: 'failed' as const, reason: internalFault, emailId: email.id, at: clock.now() }
    return { facts: recipients.map(({ position }) => ({ ...failed, position })), released: [], waiting: null }
  }

  function obstructedResult({ email, recipients }: Planned, domain: EmailDomain | null): SendResult {
    return {
      facts: factsOfObstacles(email, obstructedOf(domain, recipients), clock.now()),
      released: [],
      waiting: null,
    }
  }

  return {
    async converse(planned, draft, signals) {
      const joined = order[planned.lane].join(planned.destination)
      const endPause = planned.lane === 'single' ? bulkPause.begin() : null
      const turn: Turn = {
        come: joined.come,
        pass() {
          joined.pass()
          if (endPause !== null) startSystemTimer(endPause, handedOverMs)
        },
      }
      try {
        return await (draft.small === undefined ? sendLarge : send)(planned, draft, signals, turn)
      } catch (error) {
        onError(error)
        return released(planned)
      } finally {
        joined.pass()
        endPause?.()
        planned.leave()
      }
    },
  }
}

/** Returns the result for recipients that nothing was sent to for reasons of this service. */
function released({ email, recipients }: Planned): SendResult {
  return { facts: [], released: recipients.map((one) => startedOf(email, one)), waiting: null }
}

/** Returns the reference of the copy; a personal copy has the position of its recipient. */
function copyOf({ email, personal, recipients }: Planned): CopyRef {
  return { emailId: email.id, position: personal ? (recipients[0]?.position ?? null) : null }
}

/** Wait after a failure at a destination that another conversation could use meanwhile. Milliseconds. */
const unusablePauseMs = 5_000

const internalFault = 'The message could not be made because of a fault of the service. Ask its operator.'

/** The outcome of a recipient for which the transport returned none. This never happens. */
const missingOutcome: Outcome = {
  kind: 'deferred',
  reason: internalFault,
  reply: null,
  host: null,
  unknown: false,
  congested: false,
  unusable: false,
}

function startedOf({ id: emailId }: DueEmail, { position, attempts }: DueRecipient): StartedRecipient {
  return { emailId, position, attempt: attempts + 1 }
}

/** Returns true for an outcome that is due to a signal: no server has the message or has replied about the recipient. */
function isReleased(outcome: Outcome, { stopping, waiting }: SendSignals): boolean {
  if (outcome.kind !== 'deferred' || outcome.unknown) return false
  // Stopping breaks conversations off. The other signal leaves those that have begun alone: what they end with counts.
  return stopping.aborted ? outcome.unusable || outcome.reply === null : waiting.aborted && outcome.unusable
}
