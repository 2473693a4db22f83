import { classifyReply } from './classify-reply.ts'
import type { SmtpConnectionError } from './connection.ts'
import type { RecipientReply } from './conversation.ts'
import { textOfReply } from './reply.ts'
import type { SessionError } from './session.ts'
import type { Outcome } from './transport.ts'

type Deferred = Extract<Outcome, { kind: 'deferred' }>
type Bounced = Extract<Outcome, { kind: 'bounced' }>

/** Returns a deferral without a reply of a server. */
export function deferred(reason: string, host: string | null = null): Deferred {
  return { kind: 'deferred', reason, reply: null, host, unknown: false, congested: false, unusable: false }
}

/** Returns a bounce without a reply of a server. */
export function bounced(bounceType: 'hard' | 'soft', reason: string, host: string | null = null): Bounced {
  return { kind: 'bounced', bounceType, reason, reply: null, host }
}

/**
 * Returns the outcomes of the recipients of a conversation.
 *
 * @param isFinal True: the server is the recipients' own, not a relay.
 */
export function outcomesOf(answers: readonly RecipientReply[], host: string, isFinal: boolean): Outcome[] {
  // A reply to the message applies to all its recipients. With several, it does not show which address is at fault.
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
      const { verdict, reason } = classifyReply(answer.reply, answer.stage)
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

/** Returns whether a failed session is a permanent failure. A reply that may be forged is not. */
export function isForGood({ reply, isPermanent, isForgeable }: SessionError): boolean {
  if (isPermanent) return true
  return reply !== null && !isForgeable && classifyReply(reply, 'session').verdict.kind === 'bounced'
}

/**
 * Returns the outcome when no session could be opened: the destination cannot be used, or refuses this service. That
 * is never the fault of the address.
 *
 * @param isRelay True: the server belongs to the operator, who has to repair refusals while the message waits.
 */
export function outcomeOfSession(error: SessionError, isRelay: boolean): Outcome {
  const { stage, host, message: reason } = error
  // The reply to a login is not shown to clients: it concerns the operator only.
  const reply = error.reply === null || stage === 'auth' ? null : textOfReply(error.reply)
  if (!isRelay && isForGood(error)) return { ...bounced('soft', reason, host), reply }
  const verdict = error.reply === null ? null : classifyReply(error.reply, 'session').verdict
  const congested = verdict?.kind === 'deferred' && verdict.congested
  return { ...deferred(reason, host), reply, congested, unusable: true }
}
