import { type Reply, wordsOfReply } from './reply.ts'
import { type ReplyClass, type ReplyRule, type ReplyStage, replyRules } from './reply-table.ts'

export type Judgement = { verdict: ReplyClass; reason: string }

const notUnderstood: Judgement = {
  verdict: { kind: 'deferred', congested: false },
  reason: 'The mail server gave an answer that means nothing here.',
}

/**
 * What a reply that is no success means: the first rule of the table that matches. A reply that neither
 * refuses for now nor for good, where one of these was due, counts as one that may be other next time.
 */
export function judgeReply(reply: Reply, stage: ReplyStage): Judgement {
  const text = wordsOfReply(reply)
  const rule = replyRules.find((each) => matches(each, { reply, text, stage }))
  return rule === undefined ? notUnderstood : { verdict: rule.verdict, reason: rule.reason }
}

function matches(rule: ReplyRule, { reply, text, stage }: { reply: Reply; text: string; stage: ReplyStage }): boolean {
  if (Math.trunc(reply.code / 100) !== rule.class) return false
  if (rule.codes !== undefined && !rule.codes.includes(reply.code)) return false
  if (rule.stages !== undefined && !rule.stages.includes(stage)) return false
  // The class in the enhanced code is not believed where it is another than the code's.
  if (rule.enhanced !== undefined && !rule.enhanced.test(reply.enhanced?.slice(2) ?? '')) return false
  return rule.text === undefined || rule.text.test(text)
}

/**
 * Whether a recipient was refused only because there were others before it: it can be asked for again at
 * once, in another transaction. Source: RFC 5321 §4.5.3.1.10, which also tells of 552 for this.
 */
export function isTooManyRecipients(reply: Reply): boolean {
  const { code, enhanced } = reply
  if (code !== 452 && code !== 451 && code !== 552) return false
  return enhanced?.slice(2) === '5.3' || /too many recipients/i.test(wordsOfReply(reply))
}
