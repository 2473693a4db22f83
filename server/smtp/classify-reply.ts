import { type Reply, wordsOfReply } from './reply.ts'
import { type ReplyClass, type ReplyRule, type ReplyStage, replyRules } from './reply-table.ts'

export type ReplyClassification = { verdict: ReplyClass; reason: string }

const notUnderstood: ReplyClassification = {
  verdict: { kind: 'deferred', congested: false },
  reason: 'The mail server gave an answer that means nothing here.',
}

/**
 * Classifies a reply that is not a success, by the first rule of the table that matches. A reply that is neither 4xx
 * nor 5xx where one of them was due counts as temporary.
 */
export function classifyReply(reply: Reply, stage: ReplyStage): ReplyClassification {
  const text = wordsOfReply(reply)
  const rule = replyRules.find((each) => matches(each, { reply, text, stage }))
  return rule === undefined ? notUnderstood : { verdict: rule.verdict, reason: rule.reason }
}

function matches(rule: ReplyRule, { reply, text, stage }: { reply: Reply; text: string; stage: ReplyStage }): boolean {
  if (Math.trunc(reply.code / 100) !== rule.class) return false
  if (rule.codes !== undefined && !rule.codes.includes(reply.code)) return false
  if (rule.stages !== undefined && !rule.stages.includes(stage)) return false
  // The class of the reply code counts, also when the enhanced code has another class.
  if (rule.enhanced !== undefined && !rule.enhanced.test(reply.enhanced?.slice(2) ?? '')) return false
  return rule.text === undefined || rule.text.test(text)
}

/**
 * Returns whether a recipient was refused only because the transaction has too many. It can be sent at once in
 * another transaction. Source: RFC 5321 §4.5.3.1.10, which also mentions 552 for this.
 */
export function isTooManyRecipients(reply: Reply): boolean {
  const { code, enhanced } = reply
  if (code !== 452 && code !== 451 && code !== 552) return false
  return enhanced?.slice(2) === '5.3' || /too many recipients/i.test(wordsOfReply(reply))
}
