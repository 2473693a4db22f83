import type { StartTimer } from '../lib/timer.ts'
import { isTooManyRecipients } from './classify-reply.ts'
import { brokenOff, SmtpConnectionError } from './connection.ts'
import { dataOf, noData } from './dot-stuffing.ts'
import { type EnvelopeOptions, envelopeOf, type Letter, type Unsendable } from './envelope.ts'
import type { Reply } from './reply.ts'
import type { Session } from './session.ts'
import {
  blockTimeoutMs,
  commandTimeoutMs,
  conversationTimeoutMs,
  finalTimeoutMs,
  finalTimeoutOnStopMs,
} from './time-limits.ts'

export type ConversationStage = 'mail' | 'rcpt' | 'data' | 'message'

/** The reply of a server about one recipient, or how the connection broke before that reply. */
export type RecipientReply =
  | { kind: 'taken'; reply: Reply }
  | { kind: 'refused'; stage: ConversationStage; reply: Reply }
  /** No RCPT was sent: this server cannot take the message for the recipient. */
  | { kind: 'unsendable'; why: Unsendable }
  /** `isWhole`: the whole message was sent, so the server may have accepted it. */
  | { kind: 'broken'; stage: ConversationStage; error: SmtpConnectionError; isWhole: boolean }

export type ConversationResult = {
  /** In the order of the recipients. */
  answers: readonly RecipientReply[]
  /** True when the session is ready for another conversation. */
  isReusable: boolean
  /**
   * True when the server closed the session, or said 421, instead of replying to MAIL. On a reused session that says
   * nothing about the message.
   */
  isStale: boolean
}

export type ConversationOptions = EnvelopeOptions & { startTimer: StartTimer }

/**
 * Sends one message in one session (RFC 5321 §3.3), with as few round trips as the server allows (RFC 2920): the
 * envelope with DATA, then the message. Recipients that exceed the limit of one transaction go into the next.
 * After `conversationTimeoutMs` no further transaction begins, and an unfinished transfer is aborted.
 *
 * `signal` aborts the conversation at once; after the whole message was sent, it waits a little longer for the reply.
 * Never throws.
 */
export async function converse(
  session: Session,
  letter: Letter,
  options: ConversationOptions,
  signal: AbortSignal,
): Promise<ConversationResult> {
  const answers = new Map<number, RecipientReply>()
  let rest = letter.recipients.map((_, index) => index)
  let current: Transaction | null = null
  let isLate = false
  const timeoutMs = conversationTimeoutMs(letter.message.length)
  const stopTimer = options.startTimer(() => {
    isLate = true
    current?.giveUp(timeoutMs)
  }, timeoutMs)
  try {
    for (let isFirst = true; ; isFirst = false) {
      const recipients = rest.flatMap((index) => letter.recipients[index] ?? [])
      current = new Transaction(session, { ...letter, recipients }, options)
      const result = await current.run(signal)
      rest.forEach((index, place) => {
        const answer = result.answers[place]
        if (answer !== undefined) answers.set(index, answer)
      })
      const isProgress = result.answers.some(({ kind }) => kind === 'taken')
      rest = rest.filter((_, place) => isLeftOver(result.answers[place]))
      if (rest.length === 0 || !isProgress || !result.isReusable || isLate || signal.aborted) {
        return {
          answers: letter.recipients.flatMap((_, index) => answers.get(index) ?? []),
          isReusable: result.isReusable,
          // After the first transaction the server has replied, and may have accepted the message for some recipients.
          isStale: isFirst && result.isStale,
        }
      }
    }
  } finally {
    stopTimer()
  }
}

function isLeftOver(answer: RecipientReply | undefined): boolean {
  return answer?.kind === 'refused' && answer.stage === 'rcpt' && isTooManyRecipients(answer.reply)
}

/** One SMTP transaction and its progress. */
class Transaction {
  readonly #session: Session
  readonly #options: ConversationOptions
  readonly #message: Buffer
  readonly #mail: string
  /** For each recipient: the RCPT command, or why there is none. */
  readonly #recipients: readonly (string | Unsendable)[]
  readonly #rcptReplies: Reply[] = []
  #mailReply: Reply | null = null
  #dataReply: Reply | null = null
  #finalReply: Reply | null = null
  #isWhole = false
  /** The last 421 reply: the server is closing the connection. */
  #closingReply: Reply | null = null

  constructor(session: Session, letter: Letter, options: ConversationOptions) {
    const envelope = envelopeOf(letter, session.extensions, options)
    this.#session = session
    this.#options = options
    this.#message = letter.message
    this.#mail = envelope.mail
    this.#recipients = envelope.recipients
  }

  async run(signal: AbortSignal): Promise<ConversationResult> {
    const { connection } = this.#session
    const timers: (() => void)[] = []
    const abort = () => {
      if (!this.#isWhole) connection.fail(brokenOff())
      else timers.push(this.#options.startTimer(() => connection.fail(brokenOff()), finalTimeoutOnStopMs))
    }
    signal.addEventListener('abort', abort)
    if (signal.aborted) abort()
    try {
      await this.#talk()
      await this.#reset()
    } catch (error) {
      if (!(error instanceof SmtpConnectionError)) throw error
    } finally {
      signal.removeEventListener('abort', abort)
      for (const stopTimer of timers) stopTimer()
    }
    return {
      answers: this.#answers(),
      isReusable: connection.error === null && this.#closingReply === null,
      isStale: this.#mailReply?.code === 421 || (this.#mailReply === null && connection.error !== null),
    }
  }

  /** Aborts the transaction, unless the whole message was sent: its reply has a timeout of its own. */
  giveUp(timeoutMs: number): void {
    if (this.#isWhole) return
    const minutes = Math.round(timeoutMs / 60_000)
    const message = `The mail server did not take the message within ${minutes} minutes.`
    this.#session.connection.fail(new SmtpConnectionError('timed-out', message))
  }

  async #talk(): Promise<void> {
    const commands = this.#recipients.filter((command) => typeof command === 'string')
    if (commands.length === 0) return
    const isPipelined = this.#session.extensions.has('PIPELINING')
    if (isPipelined) this.#session.connection.send(`${[this.#mail, ...commands, 'DATA'].join('\r\n')}\r\n`)
    const ask = (command: string) => {
      if (!isPipelined) this.#session.connection.send(`${command}\r\n`)
      return this.#reply(commandTimeoutMs)
    }

    this.#mailReply = await ask(this.#mail)
    if (!isPipelined && !isPositive(this.#mailReply)) return
    for (const command of commands) this.#rcptReplies.push(await ask(command))
    const isTaken = isPositive(this.#mailReply) && this.#rcptReplies.some(isPositive)
    if (!isPipelined && !isTaken) return
    this.#dataReply = await ask('DATA')
    // After such a reply it is unclear whether the server expects the message.
    if (this.#dataReply.code < 400 && this.#dataReply.code !== 354) throw this.#fail('It answered DATA wrongly.')
    if (this.#dataReply.code !== 354) return
    if (isTaken) await this.#sendMessage()
    else await this.#sendNothing()
  }

  async #sendMessage(): Promise<void> {
    const { connection } = this.#session
    try {
      await connection.transfer(dataOf(this.#message), blockTimeoutMs)
      this.#isWhole = true
    } catch (error) {
      // The server may have refused the message early and closed the connection.
      const early = connection.takeUnread()
      if (early !== null && !isPositive(early)) this.#finalReply = early
      throw error
    }
    this.#finalReply = await this.#reply(finalTimeoutMs)
  }

  /** Sends an empty message: the server answered DATA with 354 although it accepted no recipient (RFC 2920 §3.1). */
  async #sendNothing(): Promise<void> {
    this.#session.connection.send(noData)
    await this.#reply(commandTimeoutMs)
  }

  /** Sends RSET if the transaction is still open, so that another can begin. */
  async #reset(): Promise<void> {
    if (this.#mailReply === null || !isPositive(this.#mailReply) || this.#finalReply !== null) return
    if (this.#closingReply !== null) return
    this.#session.connection.send('RSET\r\n')
    const reply = await this.#session.connection.reply(commandTimeoutMs)
    if (!isPositive(reply)) this.#fail('It answered RSET wrongly.')
  }

  #fail(why: string): SmtpConnectionError {
    const error = new SmtpConnectionError('invalid-reply', `The mail server does not keep to SMTP. ${why}`)
    this.#session.connection.fail(error)
    return error
  }

  async #reply(timeoutMs: number): Promise<Reply> {
    const reply = await this.#session.connection.reply(timeoutMs)
    if (reply.code === 421) this.#closingReply = reply
    return reply
  }

  #answers(): RecipientReply[] {
    let asked = 0
    return this.#recipients.map((command) => {
      if (typeof command !== 'string') return { kind: 'unsendable', why: command }
      const rcptReply = this.#rcptReplies[asked] ?? null
      asked += 1
      return this.#answerTo(rcptReply)
    })
  }

  #answerTo(rcptReply: Reply | null): RecipientReply {
    const steps: { stage: ConversationStage; reply: Reply | null; isGood: (reply: Reply) => boolean }[] = [
      { stage: 'mail', reply: this.#mailReply, isGood: isPositive },
      { stage: 'rcpt', reply: rcptReply, isGood: isPositive },
      { stage: 'data', reply: this.#dataReply, isGood: ({ code }) => code === 354 },
    ]
    for (const { stage, reply, isGood } of steps) {
      if (reply === null) return this.#broken(stage)
      if (!isGood(reply)) return { kind: 'refused', stage, reply }
    }
    if (this.#finalReply === null) return this.#broken('message')
    if (isPositive(this.#finalReply)) return { kind: 'taken', reply: this.#finalReply }
    return { kind: 'refused', stage: 'message', reply: this.#finalReply }
  }

  #broken(stage: ConversationStage): RecipientReply {
    // The 421 of the server explains more than the closed connection.
    if (this.#closingReply !== null) return { kind: 'refused', stage, reply: this.#closingReply }
    return { kind: 'broken', stage, error: this.#session.connection.error ?? brokenOff(), isWhole: this.#isWhole }
  }
}

/** Returns whether a reply is a positive completion. Source: RFC 5321 §4.2.1. */
function isPositive({ code }: Reply): boolean {
  return code >= 200 && code < 300
}
