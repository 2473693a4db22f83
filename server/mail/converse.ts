import type { Clock } from '../clock.ts'
import type { Db } from '../database/connection.ts'
import { type Begun, type DueEmail, type DueRecipient, readDomain } from './begin.ts'
import { type Content, loadContent, sizeOfContent } from './contents.ts'
import type { Fact } from './facts.ts'
import { createLargeRoom } from './large-room.ts'
import type { Composer } from './message/compose.ts'
import type { DkimSigner } from './message/dkim.ts'
import type { CopyRef, MailTokens } from './message/tokens.ts'
import type { EmailDomain } from './obstacle.ts'
import { factsOfObstacles, obstructedOf, type Planned } from './plan.ts'
import type { Signers } from './signers.ts'
import type { Outcome, Transport } from './transport.ts'

export type ConverseMeans = {
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

/** What became of the recipients, and those nothing was sent to because of us: they are tried again soon. */
export type Conversed = { facts: Fact[]; released: readonly Begun[] }

/** What the conversations of one email share, where it is small: its content, and the message made of it. */
export type Draft = { small: Content | undefined; message?: Promise<Buffer> }

export type Conversing = {
  /** Makes the message and holds the conversation. Never throws. */
  converse(planned: Planned, draft: Draft, signal: AbortSignal): Promise<Conversed>
}

/** What emails larger than those that are read many at a time take of the memory at once. Bytes. */
const largeBytes = 128 * 1024 * 1024
/** How often a content is in memory while it is made into a message: read, encoded, and put together. */
const copies = 3

export function createConversing(means: ConverseMeans): Conversing {
  const { db, clock, transport, composer, signers, tokens, concurrency, connectionsPerHost, onError } = means
  const half = (connections: number) => Math.max(1, Math.floor(connections / 2))
  const large = createLargeRoom({
    bytes: largeBytes,
    emails: half(concurrency),
    perDestination: half(connectionsPerHost),
    // With those inside, fewer than the worker may hold and still claim.
    waiting: concurrency,
  })

  async function sendLarge(planned: Planned, draft: Draft, signal: AbortSignal): Promise<Conversed> {
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
      return await send(planned, draft, signal)
    } finally {
      leave()
    }
  }

  async function send(planned: Planned, draft: Draft, signal: AbortSignal): Promise<Conversed> {
    const { email, destination, recipients } = planned
    const signer = email.domain && (await signers.of(email.domain.id))
    if (email.domain === null || signer === null) return hindered(planned, null)
    const content = draft.small ?? (await loadContent(db, email.id))
    // Gone meanwhile: there is nothing to be written down either.
    if (content === undefined) return { facts: [], released: [] }
    if (signal.aborted) return released(planned)
    const message = await compose(planned, draft, { content, signer }).catch(onError)
    if (!message) return unmakeable(planned)
    const mailFrom = tokens.returnPath(copyOf(planned), email.domain.returnPath)
    const sending = transport.send({ destination, mailFrom, recipients, message }, signal)
    planned.leave()
    const outcomes = await sending
    return conversedOf(planned, outcomes, signal.aborted)
  }

  function conversedOf({ email, recipients }: Planned, outcomes: readonly Outcome[], isStopping: boolean): Conversed {
    const at = clock.now()
    const conversed = recipients.map((recipient, index) => {
      const outcome = outcomes[index] ?? lost
      if (isStopping && isUntried(outcome)) return { released: begunOf(email, recipient) }
      return { fact: { ...outcome, emailId: email.id, position: recipient.position, at } }
    })
    return {
      facts: conversed.flatMap(({ fact }) => fact ?? []),
      released: conversed.flatMap(({ released }) => released ?? []),
    }
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

  function unmakeable({ email, recipients }: Planned): Conversed {
    const failed = { kind: 'failed' as const, reason: faultOfOurs, emailId: email.id, at: clock.now() }
    return { facts: recipients.map(({ position }) => ({ ...failed, position })), released: [] }
  }

  function hindered({ email, recipients }: Planned, domain: EmailDomain | null): Conversed {
    return { facts: factsOfObstacles(email, obstructedOf(domain, recipients), clock.now()), released: [] }
  }

  return {
    async converse(planned, draft, signal) {
      try {
        return await (draft.small === undefined ? sendLarge : send)(planned, draft, signal)
      } catch (error) {
        onError(error)
        return released(planned)
      } finally {
        planned.leave()
      }
    },
  }
}

/** Nothing was sent, and that is nobody's fault but ours. */
function released({ email, recipients }: Planned): Conversed {
  return { facts: [], released: recipients.map((one) => begunOf(email, one)) }
}

/** A personal one is of its only recipient. */
function copyOf({ email, personal, recipients }: Planned): CopyRef {
  return { emailId: email.id, position: personal ? (recipients[0]?.position ?? null) : null }
}

const faultOfOurs = 'The message could not be made because of a fault of the service. Ask its operator.'

/** For a recipient a transport says nothing of, which it never does. */
const lost: Outcome = {
  kind: 'deferred',
  reason: faultOfOurs,
  reply: null,
  host: null,
  unknown: false,
  congested: false,
}

function begunOf({ id: emailId }: DueEmail, { position, attempts }: DueRecipient): Begun {
  return { emailId, position, attempt: attempts + 1 }
}

/** Whether a server neither has the message nor has said anything of the recipient. */
function isUntried(outcome: Outcome): boolean {
  return outcome.kind === 'deferred' && !outcome.unknown && outcome.reply === null
}
