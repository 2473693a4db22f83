import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { classifyReply, isTooManyRecipients } from '../../server/smtp/classify-reply.ts'
import type { ReplyClass, ReplyStage } from '../../server/smtp/reply-table.ts'
import { replyOf } from './reply-of.ts'

const hard: ReplyClass = { kind: 'bounced', bounceType: 'hard' }
const soft: ReplyClass = { kind: 'bounced', bounceType: 'soft' }
const later: ReplyClass = { kind: 'deferred', congested: false }
const slower: ReplyClass = { kind: 'deferred', congested: true }

/** Replies in the words of the large providers and the common servers. */
const said: [provider: string, stage: ReplyStage, text: string, verdict: ReplyClass][] = [
  [
    'Gmail',
    'rcpt',
    "550-5.1.1 The email account that you tried to reach does not exist. Please try\n550-5.1.1 double-checking the recipient's email address for typos or\n550 5.1.1 unnecessary spaces. For more information, go to https://support.google.com/mail/?p=NoSuchUser - gsmtp",
    hard,
  ],
  [
    'Gmail',
    'rcpt',
    '550-5.2.1 The email account that you tried to reach is inactive.\n550 5.2.1 https://support.google.com/mail/?p=DisabledUser - gsmtp',
    hard,
  ],
  [
    'Gmail',
    'rcpt',
    "552-5.2.2 The recipient's inbox is out of storage space and inactive. Please direct\n552 5.2.2 the recipient to https://support.google.com/mail/?p=OverQuotaPerm - gsmtp",
    soft,
  ],
  [
    'Gmail',
    'rcpt',
    "452-4.2.2 The recipient's inbox is out of storage space. Please direct the\n452 4.2.2 recipient to https://support.google.com/mail/?p=OverQuotaTemp - gsmtp",
    later,
  ],
  [
    'Gmail',
    'rcpt',
    '450-4.2.1 The user you are trying to contact is receiving mail too quickly.\n450 4.2.1 Please resend your message at a later time. - gsmtp',
    later,
  ],
  [
    'Gmail',
    'rcpt',
    '450-4.2.1 The user you are trying to contact is receiving mail at a rate that\n450 4.2.1 prevents additional messages from being delivered. - gsmtp',
    later,
  ],
  [
    'Gmail',
    'rcpt',
    '550-5.2.1 The user you are trying to contact is receiving mail at a rate that\n550 5.2.1 prevents additional messages from being delivered. - gsmtp',
    soft,
  ],
  [
    'Gmail',
    'message',
    '421-4.7.28 Gmail has detected an unusual rate of unsolicited mail originating\n421 4.7.28 from your IP Netblock. - gsmtp',
    slower,
  ],
  [
    'Gmail',
    'session',
    '421-4.7.0 [203.0.113.9      15] Our system has detected that this message is\n421 4.7.0 suspicious due to the very low reputation of the sending IP address. - gsmtp',
    slower,
  ],
  [
    'Gmail',
    'message',
    '550-5.7.26 This mail has been blocked because the sender is unauthenticated.\n550 5.7.26 Gmail requires all senders to authenticate with either SPF or DKIM. - gsmtp',
    soft,
  ],
  [
    'Gmail',
    'message',
    '550-5.7.1 [203.0.113.9] Our system has detected that this message is likely\n550 5.7.1 unsolicited mail. - gsmtp',
    soft,
  ],
  [
    'Gmail',
    'message',
    '552-5.7.0 This message was blocked because its content presents a potential\n552 5.7.0 security issue. - gsmtp',
    soft,
  ],
  [
    'Microsoft',
    'rcpt',
    '550 5.4.1 Recipient address rejected: Access denied. [AM7EUR03FT012.eop-EUR03.prod.protection.outlook.com 2026-01-02T03:04:05.678Z]',
    hard,
  ],
  ['Microsoft', 'rcpt', '550 5.1.10 RESOLVER.ADR.RecipientNotFound; Recipient not found by SMTP address lookup', hard],
  [
    'Microsoft',
    'rcpt',
    '550 5.5.0 Requested action not taken: mailbox unavailable (S2017062302). [DB5EUR03FT001.eop-EUR03.prod.protection.outlook.com]',
    hard,
  ],
  ['Microsoft', 'rcpt', '554 5.2.2 mailbox full; STOREDRV.Deliver.Exception:QuotaExceededException', soft],
  [
    'Microsoft',
    'mail',
    "550 5.7.1 Unfortunately, messages from [203.0.113.9] weren't sent. Please contact your Internet service provider since part of their network is on our block list (S3140).",
    soft,
  ],
  ['Microsoft', 'rcpt', '550 5.7.606 Access denied, banned sending IP [203.0.113.9]', soft],
  [
    'Microsoft',
    'message',
    '550 5.7.509 Access denied, sending domain sender.test does not pass DMARC verification and has a DMARC policy of reject.',
    soft,
  ],
  ['Microsoft', 'session', '451 4.7.500 Server busy. Please try again later from [203.0.113.9]. (S77719)', slower],
  [
    'Microsoft',
    'session',
    "421 RP-001 (BAY004-MC1F1) Unfortunately, some messages from 203.0.113.9 weren't sent.",
    slower,
  ],
  [
    'Microsoft',
    'rcpt',
    '451 4.7.650 The mail server [203.0.113.9] has been temporarily rate limited due to IP reputation.',
    slower,
  ],
  [
    'Microsoft',
    'rcpt',
    '452 4.5.3 Too many recipients (AS780090) [HE1EUR01FT001.eop-EUR01.prod.protection.outlook.com]',
    later,
  ],
  [
    'Yahoo',
    'message',
    "554 delivery error: dd This user doesn't have a yahoo.com account (b@yahoo.com) [0] - mta4000.mail.bf1.yahoo.com",
    hard,
  ],
  ['Yahoo', 'rcpt', '552 1 Requested mail action aborted, mailbox not found', hard],
  [
    'Yahoo',
    'message',
    '554 30 Sorry, your message to b@yahoo.com cannot be delivered. This mailbox is disabled (554.30).',
    hard,
  ],
  [
    'Yahoo',
    'mail',
    '421 4.7.0 [TSS04] Messages from 203.0.113.9 temporarily deferred due to unexpected volume or user complaints - 4.16.55.1',
    slower,
  ],
  [
    'Yahoo',
    'mail',
    "553 5.7.1 [BL21] Connections will not be accepted from 203.0.113.9, because the ip is in Spamhaus's list",
    soft,
  ],
  [
    'Yahoo',
    'message',
    '554 5.7.9 Message not accepted for policy reasons. See https://senders.yahooinc.com/error-codes',
    soft,
  ],
  ['Apple', 'rcpt', '550 5.1.1 <b@icloud.com>: user does not exist', hard],
  ['Apple', 'rcpt', '552 5.2.2 <b@icloud.com>: user is over quota', soft],
  [
    'Apple',
    'message',
    '550 5.7.1 [CS01] Message rejected due to local policy. Please visit https://support.apple.com/en-us/HT204137',
    soft,
  ],
  [
    'Apple',
    'session',
    '421 4.7.1 [IPTS04] Messages from 203.0.113.9 temporarily deferred due to user complaints',
    slower,
  ],
  [
    'Comcast',
    'session',
    '421 resimta-c1p-0 comcast 203.0.113.9 Throttled - try again later. https://postmaster.comcast.net/smtp-error-codes.php#RL000001',
    slower,
  ],
  ['Postfix', 'rcpt', '550 5.1.1 <b@x.test>: Recipient address rejected: User unknown in virtual mailbox table', hard],
  ['Postfix', 'rcpt', '450 4.1.1 <b@x.test>: Recipient address rejected: User unknown in local recipient table', later],
  ['Postfix', 'rcpt', '554 5.7.1 <b@x.test>: Relay access denied', soft],
  [
    'Postfix',
    'rcpt',
    '450 4.2.0 <b@x.test>: Recipient address rejected: Greylisted, see http://postgrey.schweikert.ch/help/x.test.html',
    later,
  ],
  ['Postfix', 'mail', '530 5.7.0 Must issue a STARTTLS command first', later],
  ['Postfix', 'rcpt', '554 5.7.1 Service unavailable; Client host [203.0.113.9] blocked using zen.spamhaus.org', soft],
  ['Postfix', 'rcpt', '450 4.7.25 Client host rejected: cannot find your hostname, [203.0.113.9]', later],
  ['Postfix', 'mail', '452 4.3.1 Insufficient system storage', slower],
  ['Postfix', 'rcpt', '421 4.7.0 mx.x.test Error: too many connections from 203.0.113.9', slower],
  ['Postfix', 'mail', '552 5.3.4 Message size exceeds fixed limit', soft],
  ['Postfix', 'rcpt', '550 5.1.2 <b@x.test>: Recipient address rejected: Domain not found', hard],
  ['Postfix', 'mail', '550 5.1.8 <a@y.test>: Sender address rejected: Domain not found', soft],
  ['Postfix', 'rcpt', '550 5.1.0 <a@y.test>: Sender address rejected: User unknown in virtual mailbox table', soft],
  [
    'Postfix',
    'rcpt',
    '550 5.1.7 <a@y.test>: Sender address rejected: undeliverable address: host mx.y.test said: 550 5.1.1 User unknown',
    soft,
  ],
  ['Postfix', 'rcpt', '550 5.1.1 <b@x.test>: Recipient address rejected: User unknown in local recipient table', hard],
  [
    'Postfix',
    'rcpt',
    '550 5.1.1 <b@x.test>: Recipient address rejected: undeliverable address: host mx.x.test said: 550 5.1.1 User unknown',
    hard,
  ],
  ['Dovecot', 'rcpt', '552 5.2.2 <b@x.test> Quota exceeded (mailbox for user is full)', soft],
  ['Exim', 'rcpt', '550 No Such User Here', hard],
  ['Exim', 'rcpt', '550 Unrouteable address', hard],
  ['Exim', 'rcpt', '451 Temporary local problem - please try later', later],
  [
    'Exim',
    'rcpt',
    '451-203.0.113.9 is not yet authorized to deliver mail from\n451 <a@y.test> to <b@x.test>. Please try later.',
    later,
  ],
  ['Exim', 'rcpt', '550-Verification failed for <a@y.test>\n550-Unrouteable address\n550 Sender verify failed', soft],
  [
    'Exim',
    'rcpt',
    '550-Verification failed for <a@y.test>\n550-Called:   192.0.2.1\n550-Sent:     RCPT TO:<a@y.test>\n550-Response: 550 5.1.1 User unknown\n550 Sender verify failed',
    soft,
  ],
  ['Exim', 'rcpt', '550-Callout verification failed:\n550 550 5.1.1 <b@x.test>: User unknown', hard],
  ['Exim', 'rcpt', '550 relay not permitted', soft],
  ['Exim', 'rcpt', '550 Administrative prohibition', soft],
  ['qmail', 'message', '554 sorry, no mailbox here by that name. (#5.1.1)', hard],
  ['qmail', 'message', "550 sorry, that domain isn't in my list of allowed rcpthosts (#5.7.1)", soft],
  ['Sendmail', 'rcpt', '550 5.1.1 <b@x.test>... User unknown', hard],
  ['Sendmail', 'session', '554 5.0.0 mx.x.test ESMTP not accepting messages', soft],
  // Of the server or of us: it is given fewer connections.
  ['Microsoft', 'rcpt', '451 4.7.0 Temporary server error. Please try again later. PRX4', slower],
  ['Microsoft', 'message', '451 4.7.0 Temporary server error. Please try again later. PRX2', slower],
  ['Postfix', 'mail', '451 4.7.1 Service unavailable - try again later', slower],
  ['Postfix', 'message', '451 4.7.1 Service unavailable - try again later', slower],
  ['Postfix', 'rcpt', '451 4.3.0 <b@x.test>: Temporary lookup failure', slower],
  ['qmail', 'message', '451 qq temporary problem (#4.3.0)', slower],
  ['Exim', 'mail', '452 space shortage, please try later', slower],
  ['Exim', 'mail', '451 Temporary local problem - please try later', slower],
  ['Sendmail', 'mail', '452 4.4.5 Insufficient disk space; try again later', slower],
  ['RFC 5321', 'mail', '452 Requested action not taken: insufficient system storage', slower],
  ['RFC 5321', 'rcpt', '452 Requested action not taken: insufficient system storage', slower],
  ['a server', 'rcpt', '451 4.7.1 Try again later', slower],
  ['a server', 'session', '451 4.7.1 Try again later', slower],
  ['a server', 'message', '452 Not now', slower],
  // Of one recipient, or of strangers: it is not.
  ['RFC 5321', 'rcpt', '452 Too many recipients', later],
  ['a server', 'rcpt', '450 4.2.0 Try later', later],
  ['a server', 'rcpt', '451 4.2.1 Mailbox is busy, try again later', later],
  ['a server', 'rcpt', '451 The mailbox is locked, try again later', later],
  ['a server', 'rcpt', '450 Requested mail action not taken: please try again later', later],
  ['a server', 'rcpt', '452 Insufficient storage space in the mailbox of the user', later],
  ['a server', 'message', '452 4.2.2 No room', later],
  ['Postfix', 'message', '452 4.3.4 Message size exceeds what there is room for', later],
  ['Postfix', 'rcpt', '450 4.7.1 <b@x.test>: Recipient address rejected: not known yet, try again later', later],
  ['postscreen', 'rcpt', '450 4.3.2 Service currently unavailable', later],
  ['postscreen', 'session', '421 4.3.2 Service currently unavailable', slower],
  ['Rspamd', 'message', '451 4.7.1 Try again later', later],
  ['a greylist', 'rcpt', '451 4.3.0 Greylisted, please try again later', later],
  ['a greylist', 'rcpt', '451 Greylisted, please try again later', later],
  ['a greylist', 'rcpt', '451 4.7.1 Greylisting in action, please come back in 00:05:00', later],
  ['a greylist with the wrong class', 'rcpt', '550 5.7.1 Greylisted, please try again in 300 seconds', later],
  ['Barracuda', 'rcpt', '550 5.7.1 Service unavailable; Client host blocked by Barracuda Reputation', soft],
  ['Mimecast', 'rcpt', '550 Rejected by header based manually Blocked Senders: a@y.test', soft],
  [
    'GMX',
    'session',
    '554-gmx.net (mxgmx017) Nemesis ESMTP Service not available\n554-No SMTP service\n554 IP address is black listed.',
    soft,
  ],
  ['GMX', 'rcpt', '550 Requested action not taken: mailbox unavailable', soft],
  ['a null MX', 'rcpt', '556 5.1.10 Recipient address has null MX', hard],
  ['a server that calls a missing user policy', 'rcpt', '550 5.7.1 No such user!', hard],
  ['a server that looks the sender up', 'rcpt', '553 5.1.1 Invalid sender: mailbox not found', soft],
  ['a sender that is not known', 'mail', '550 5.1.1 Sender unknown', soft],
]

/** Verdicts on replies whose codes and words contradict each other, and on codes by themselves. */
const ranked: readonly [stage: ReplyStage, text: string, verdict: ReplyClass][] = [
  // The enhanced code before the words.
  ['rcpt', '550 5.2.2 user unknown', soft],
  ['rcpt', '550 5.7.1 account is disabled by policy', soft],
  ['rcpt', '550 5.1.1 User unknown; mailbox full', hard],
  ['rcpt', '553 5.1.7 address invalid', soft],
  ['rcpt', '550 5.1.8 address does not exist', soft],
  // The sender's fault before the address's.
  ['rcpt', '550 user unknown, or blocked by a blacklist', soft],
  // Enhanced codes by themselves.
  ['rcpt', '550 5.1.6 moved', hard],
  ['message', '554 5.4.6 hops', soft],
  ['rcpt', '552 5.5.3 enough', later],
  ['rcpt', '451 4.4.5 busy', slower],
  // Of the sender, whatever the code says of a mailbox.
  ['mail', '550 5.1.1 no', soft],
  ['mail', '550 5.1.6 no', soft],
  ['mail', '550 5.2.1 no', soft],
  ['mail', '550 5.5.0 mailbox unavailable', soft],
  ['mail', '550 5.7.1 user unknown', soft],
  ['mail', '550 account disabled', soft],
  // Codes without anything.
  ['rcpt', '551 no', hard],
  ['message', '551 no', soft],
  ['rcpt', '552 no', soft],
  ['rcpt', '556 no', hard],
  ['message', '556 no', soft],
  ['rcpt', '421 no', slower],
  ['rcpt', '450 mailbox full', later],
  ['mail', '452 no', slower],
  ['rcpt', '452 no', later],
  ['session', '454 no', later],
]

describe('a reply is judged', () => {
  test.each(ranked)('a reply is judged at %s: %s', (stage, text, verdict) => {
    expect(classifyReply(replyOf(text), stage).verdict).toEqual(verdict)
  })

  test.each(said)('%s, at %s: %s', (_provider, stage, text, verdict) => {
    expect(classifyReply(replyOf(text), stage).verdict).toEqual(verdict)
  })
})

test('the reason is a sentence for people, and says why', () => {
  expect(classifyReply(replyOf('552 5.2.2 Quota exceeded'), 'rcpt').reason).toBe('The mailbox is full.')
  expect(classifyReply(replyOf('421 4.7.0 Too many connections'), 'rcpt').reason).toBe(
    'The mail server asks for fewer messages or connections.',
  )
})

const stages = fc.constantFrom<ReplyStage>('session', 'mail', 'rcpt', 'data', 'message')
const enhanced = fc.option(fc.tuple(fc.constantFrom(2, 4, 5), fc.nat(7), fc.nat(700)).map((parts) => parts.join('.')))
const words = fc.constantFrom(
  ...[
    'mailbox',
    'unknown',
    'full',
    'spam',
    'DMARC',
    'greylisted',
    'blocked',
    'too many',
    'user',
    'does not exist',
    'later',
  ],
)
const texts = fc.oneof(
  fc.string(),
  fc.array(words).map((parts) => parts.join(' ')),
)

test('every reply has one verdict, and one that says later is never a bounce', () => {
  fc.assert(
    fc.property(fc.integer({ min: 200, max: 599 }), enhanced, texts, stages, (code, status, text, stage) => {
      const { verdict, reason } = classifyReply({ code, enhanced: status, lines: [text] }, stage)
      expect(reason).toMatch(/^[A-Z].*\.$/)
      if (code < 500) expect(verdict.kind).toBe('deferred')
      // A reply before a recipient was named cannot be the recipient's fault.
      if (stage === 'session' || stage === 'mail') expect(verdict).not.toEqual(hard)
    }),
    { numRuns: 2000 },
  )
})

test('a 5xx without a meaning bounces soft', () => {
  for (const stage of ['session', 'mail', 'rcpt', 'data', 'message'] as const) {
    expect(classifyReply(replyOf('571 Hm'), stage).verdict).toEqual(soft)
  }
})

test.each([
  ['452 4.5.3 Too many recipients', true],
  ['452 too many recipients received this session', true],
  ['452 4.2.2 Mailbox full', false],
  ['250 2.1.5 Ok', false],
  ['550 5.5.3 Too many recipients', false],
])('whether %s is about the number of recipients: %s', (text, expected) => {
  expect(isTooManyRecipients(replyOf(text))).toBe(expected)
})
