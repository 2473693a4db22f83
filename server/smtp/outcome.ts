import type { SmtpConnectionError } from './connection.ts'
import type { RecipientReply } from './conversation.ts'
import { textOfReply } from './reply.ts'
import { judgeReply } from './reply-rules.ts'
import type { SessionError } from './session.ts'
import type { Outcome } from './transport.ts'

type Deferred = Extract<Outcome, { kind: 'deferred' }>
type Bounced = Extract<Outcome, { kind: 'bounced' }>

/** A deferral that no server asked for. */
export function deferred(reason: string, host: string | null = null): Deferred {
  return { kind: 'deferred', reason, reply: null, host, unknown: false, congested: false, unusable: false }
}

/** A bounce that no server asked for. */
export function bounced(bounceType: 'hard' | 'soft', reason: string, host: string | null = null): Bounced {
  return { kind: 'bounced', bounceType, reason, reply: null, host }
}

/**
 * What the answers of a conversation mean for its recipients.
 *
 * @param isFinal Whether the server is the recipients' own.
 */
export function outcomesOf(answers: readonly RecipientReply[], host: string, isFinal: boolean): Outcome[] {
  // What is said of the message is said of all who share it: whose address is at fault cannot be told then.
  const sharing = answers.filter((answer) => isOfMessage(answer)).length
  return answers.map((answer) => outcomeOf(answer, { host, isFinal, isShared: sharing > 1 }))
}

function isOfMessage(answer: RecipientReply): boolean {
  return answer.kind === 'refused' && (answer.stage === 'data' || answer.stage === 'message')
}

function outcomeOf(answer: RecipientReply, at: { host: string; isFinal: boolean; isShared: boolean }): Outcome {
  const { host } = at
  switch (answer.kind) {
    case 'taken':
      return { kind: 'accepted', final: at.isFinal, reply: textOfReply(answer.reply), host }
    case 'unsendable': {
      const { code, enhanced, message } = answer.why
      return { kind: 'bounced', bounceType: 'soft', reason: message, reply: `${code} ${enhanced} ${message}`, host }
    }
    case 'broken':
      return { ...deferred(reasonOfBreak(answer), host), unknown: answer.isWhole }
    case 'refused': {
      const { verdict, reason } = judgeReply(answer.reply, answer.stage)
      const reply = textOfReply(answer.reply)
      if (verdict.kind === 'deferred') return { ...verdict, reason, reply, host, unknown: false, unusable: false }
      const isBlameless = at.isShared && isOfMessage(answer)
      return { ...verdict, ...(isBlameless && { bounceType: 'soft' }), reason, reply, host }
    }
  }
}

function reasonOfBreak({ error, isWhole }: { error: SmtpConnectionError; isWhole: boolean }): string {
  return isWhole ? `${error.message} It may have taken the message before.` : error.message
}

/** Whether a host that could not be talked to would say the same later. Of a reply that may be forged nobody knows. */
export function isForGood({ reply, isPermanent, isForgeable }: SessionError): boolean {
  if (isPermanent) return true
  return reply !== null && !isForgeable && judgeReply(reply, 'session').verdict.kind === 'bounced'
}

/**
 * What it means that no session could be opened: the way out cannot be used, or refuses the service itself, which is
 * never the address's fault.
 *
 * @param isRelay The server is the operator's: refusals are theirs to mend, and the message can wait.
 */
export function outcomeOfSession(error: SessionError, isRelay: boolean): Outcome {
  const { stage, host, message: reason } = error
  // The reply to a login is between the operator and the relay.
  const reply = error.reply === null || stage === 'auth' ? null : textOfReply(error.reply)
  if (!isRelay && isForGood(error)) return { ...bounced('soft', reason, host), reply }
  const verdict = error.reply === null ? null : judgeReply(error.reply, 'session').verdict
  const congested = verdict?.kind === 'deferred' && verdict.congested
  return { ...deferred(reason, host), reply, congested, unusable: true }
}
