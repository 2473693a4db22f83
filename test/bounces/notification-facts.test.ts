import { expect, test } from 'vitest'
import { classifyFailure, replyTextOf } from '../../server/bounces/classify-report.ts'
import { factsOf } from '../../server/bounces/notification-facts.ts'
import type { Notification } from '../../server/bounces/read.ts'

const at = new Date('2026-03-01T09:30:00Z')
const original = { copyToken: null, returnPath: null, unsubscribeToken: null }
const two = {
  id: 'email',
  recipients: [
    { position: 0, addressKey: 'ada@example.org' },
    { position: 1, addressKey: 'bob@example.org' },
  ],
}
const one = { id: 'email', recipients: [{ position: 4, addressKey: 'ada@example.org' }] }

function dsn(...recipients: Partial<Extract<Notification, { kind: 'dsn' }>['recipients'][number]>[]): Notification {
  const failed = { addresses: [], action: 'failed', status: null, diagnostic: null, host: null } as const
  return { kind: 'dsn', recipients: recipients.map((recipient) => ({ ...failed, ...recipient })), original }
}

function arf(feedbackType: string, ...recipients: string[]): Notification {
  return { kind: 'arf', feedbackType, recipients, original }
}

const read = (notification: Notification, email = two, position: number | null = null) =>
  factsOf(notification, email, { at, keyOf: (address) => address.toLowerCase(), position })

test('a delivery status notification tells of each recipient it names, however the address is written', () => {
  const facts = read(
    dsn(
      { addresses: ['forwarded@elsewhere.example', 'Bob@Example.org'], status: '5.1.1', host: 'mx.example.org' },
      { addresses: ['ada@example.org'], action: 'delayed', status: '4.4.1' },
      { addresses: ['eve@example.org'], status: '5.1.1' },
    ),
  )
  expect(facts).toMatchObject([
    { emailId: 'email', position: 1, at, kind: 'bounced', bounceType: 'soft', host: 'mx.example.org' },
    { emailId: 'email', position: 0, at, kind: 'delayed', reply: '450 4.4.1' },
  ])
})

test('a delivery status notification is of the only recipient, whoever it names', () => {
  expect(read(dsn({ addresses: ['forwarded@elsewhere.example'] }), one)).toMatchObject([{ position: 4 }])
})

test('a delivery status notification is of the recipient whose copy came back, whoever it names', () => {
  expect(read(dsn({ addresses: ['forwarded@elsewhere.example'] }), two, 1)).toMatchObject([{ position: 1 }])
  expect(read(dsn({ addresses: ['ada@example.org'] }), two, 1)).toMatchObject([{ position: 1 }])
  expect(read(dsn({ addresses: ['ada@example.org'] }), two, 7)).toEqual([])
})

test.each(['delivered', 'relayed', 'expanded'] as const)(
  'a delivery status notification that says %s says no more',
  (action) => {
    expect(read(dsn({ action, diagnostic: '250 2.0.0 OK' }), one)).toMatchObject([
      { kind: action, reply: '250 2.0.0 OK' },
    ])
  },
)

test('the answer of success is told as it was given', () => {
  const replyTo = (diagnostic: string | null) => replyTextOf({ status: '2.0.0', diagnostic })
  expect(replyTo('250 2.0.0 OK: queued as 250')).toBe('250 2.0.0 OK: queued as 250')
  expect(replyTo('250 OK')).toBe('250 OK')
  expect(replyTo(null)).toBe('250')
})

test.each(['abuse', 'fraud', 'virus', 'opt-out', 'other', 'unheard-of'])(
  'a feedback report of %s is a complaint',
  (type) => {
    expect(read(arf(type, 'bob@example.org'))).toMatchObject([{ position: 1, kind: 'complained', feedbackType: type }])
  },
)

test.each(['not-spam', 'auth-failure'])('a feedback report of %s is no complaint', (type) => {
  expect(read(arf(type, 'bob@example.org'))).toEqual([])
})

test('a feedback report without a recipient is of the only one, or of the one whose copy it carries', () => {
  expect(read(arf('abuse'), one)).toMatchObject([{ position: 4 }])
  expect(read(arf('abuse', 'redacted@example.net'), two, 1)).toMatchObject([{ position: 1 }])
  expect(read(arf('abuse', 'ada@example.org'), two, 1)).toMatchObject([{ position: 1 }])
  expect(read(arf('abuse', 'redacted@example.net'))).toEqual([])
})

test.each([
  ['5.1.1', '550 5.1.1 User unknown', 'hard', '550 5.1.1 User unknown'],
  ['5.0.0', '550 5.1.1 User unknown', 'hard', '550 5.1.1 User unknown'],
  ['5.1.1', null, 'hard', '550 5.1.1'],
  ['5.1.1', 'unknown local user', 'hard', '550 5.1.1 unknown local user'],
  ['5.0.0', '550-5.2.2 The mailbox is 550 5.2.2 full', 'soft', '550 5.2.2 The mailbox is full'],
  ['5.7.1', '554 5.7.1 blocked using a block list', 'soft', '554 5.7.1 blocked using a block list'],
  ['4.4.7', 'delivery time expired', 'soft', '450 4.4.7 delivery time expired'],
  ['5.4.7', '421 4.4.2 timed out', 'soft', '421 4.4.2 timed out'],
  [null, 'some words', 'soft', '550 some words'],
  [null, null, 'soft', null],
])('a failure with %s and %j is %s', (status, diagnostic, bounceType, reply) => {
  expect(classifyFailure({ status, diagnostic, addresses: [] })).toMatchObject({
    bounceType,
    reply,
    reason: expect.stringMatching(/\.$/),
  })
})

const notFound = (name: string, type: string, why: string) =>
  `Host or domain name not found. Name service error for name=${name} type=${type}: ${why}`

test.each([
  ['a domain that does not exist', '5.4.4', notFound('Gone.example', 'AAAA', 'Host not found'), 'hard'],
  [
    'a domain without any record',
    '5.4.4',
    notFound('gone.example.', 'MX', 'Host found but no data record of requested type'),
    'hard',
  ],
  ['a mail server that does not exist', '5.4.4', notFound('mx.gone.example', 'A', 'Host not found'), 'soft'],
  ['a name server that fails', '5.4.4', notFound('gone.example', 'MX', 'Host not found, try again'), 'soft'],
  ['a name server that failed for long', '4.4.3', notFound('gone.example', 'MX', 'Host not found'), 'soft'],
  ['a null MX', '5.1.0', 'Domain gone.example does not accept mail (nullMX)', 'hard'],
  [
    'a null MX, as Postfix refuses it',
    '5.1.10',
    '556 5.1.10 <ada@gone.example>: Recipient address rejected: Domain gone.example does not accept mail (nullMX)',
    'hard',
  ],
  [
    'a null MX of the sender',
    '5.7.27',
    '550 5.7.27 <hello@shop.example>: Sender address rejected: Domain shop.example does not accept mail (nullMX)',
    'soft',
  ],
  [
    'a domain that Exchange does not find',
    '5.4.310',
    '550 5.4.310 DNS domain gone.example does not exist [Message=InfoDomainNonexistent]',
    'hard',
  ],
])(
  'a failure of %s is judged by what it says of the domain of the recipient',
  (_name, status, diagnostic, bounceType) => {
    expect(classifyFailure({ status, diagnostic, addresses: ['ada@gone.example'] })).toMatchObject({ bounceType })
  },
)

test('a failure keeps what a hostile server says to one printable line of bounded length', () => {
  const { reply } = classifyFailure({
    addresses: [],
    status: '5.1.1',
    diagnostic: `550 5.1.1 a\u001b[2Jb\n${'c'.repeat(10_000)}`,
  })
  expect(reply).toMatch(/^550 5\.1\.1 a\\u001b\[2Jb c+$/)
  expect(reply?.length).toBeLessThan(1_100)
})
