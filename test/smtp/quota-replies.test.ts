import { expect, test } from 'vitest'
import { classifyReply } from '../../server/smtp/classify-reply.ts'
import type { ReplyClass } from '../../server/smtp/reply-table.ts'
import { replyOf } from './reply-of.ts'

const soft: ReplyClass = { kind: 'bounced', bounceType: 'soft' }
const later: ReplyClass = { kind: 'deferred', congested: false }
const slower: ReplyClass = { kind: 'deferred', congested: true }
const full = 'The mailbox is full.'
const rateLimited = 'The mail server asks for fewer messages or connections.'

test.each<[text: string, reason: string, verdict: ReplyClass]>([
  ['451 4.7.0 Daily quota exceeded', rateLimited, slower],
  ['452 Hourly message quota exceeded', rateLimited, slower],
  ['454 4.7.0 You have exceeded your quota of 500 emails per day', rateLimited, slower],
  ['550 5.4.5 Daily user sending limit exceeded', rateLimited, soft],
  ['550 Outgoing quota exceeded for this account', rateLimited, soft],
  ['451 4.7.0 Quota exceeded', full, later],
  ['452 The mailbox has exceeded its daily quota', full, later],
  ['452 4.2.2 Daily quota exceeded', full, later],
  ['552 User quota exceeded, stop sending', full, soft],
])('a quota of the sender is not one of the mailbox: %s', (text, reason, verdict) => {
  expect(classifyReply(replyOf(text), 'rcpt')).toEqual({ verdict, reason })
})
