import { createHash, createPublicKey, generateKeyPairSync, verify } from 'node:crypto'
import { expect, test } from 'vitest'
import { dataToSign, namesToSign, signedHeader, signMessage } from '../../server/message/dkim.ts'
import { relaxedBody, splitMessage } from '../../server/message/dkim-canonicalization.ts'
import { bothPass, composer, partsOf, signedAt, signer, verified } from '../support/worlds/message.ts'

const plain = Buffer.from(
  [
    'From: Ann <ann@example.com>',
    'To: Bob <bob@example.org>',
    'Subject: A subject that is',
    ' folded  and has\ttabs ',
    'Date: Sun, 01 Mar 2026 09:30:00 +0000',
    'Message-ID: <one@example.com>',
    'X-Other: not signed',
    '',
    'Hello  Bob \t',
    '',
    '.a line with a dot ',
    '',
    '',
  ].join('\r\n'),
)

test('a signed message is the message with the signatures in front, in lines that are not long', async () => {
  const message = (await signMessage(plain, signer, signedAt)).toString()
  const [rsa = '', ed25519 = ''] = message.split(/(?=DKIM-Signature)/)

  expect(message.endsWith(plain.toString())).toBe(true)
  expect(rsa).toMatch(
    /^DKIM-Signature: v=1; a=rsa-sha256; c=relaxed\/relaxed;\r\n d=example\.com;\r\n s=r1; t=1772366400;/,
  )
  expect(ed25519).toMatch(/^DKIM-Signature: v=1; a=ed25519-sha256; c=relaxed\/relaxed;\r\n d=example\.com;\r\n s=e1;/)
  for (const line of message.split('\r\n')) expect(line.length).toBeLessThanOrEqual(78)
})

test('a signed message passes an independent verifier, by both keys', async () => {
  expect(await verified(await signMessage(plain, signer, signedAt))).toEqual(bothPass)
})

test.each([
  ['nothing of the body', Buffer.from('From: ann@example.com\r\n\r\n')],
  ['no line end after the last line', Buffer.from('From: ann@example.com\r\n\r\nHello')],
  [
    'fields that are there more than once',
    Buffer.from('From: a@example.com\r\nReferences: <1@x>\r\nReferences: <2@x>\r\n\r\nx\r\n'),
  ],
  ['a field in UTF-8', Buffer.from('From: à@example.com\r\nSubject: à\r\n\r\nx\r\n')],
])('a signed message passes with %s', async (_, message) => {
  expect(await verified(await signMessage(message, signer, signedAt))).toEqual(bothPass)
})

test.each([
  ['a letter of the body', 'Hello', 'Hallo'],
  ['the subject', 'Subject: A', 'Subject: No'],
  ['a second From', 'From: Ann', 'From: Eve <eve@example.net>\r\nFrom: Ann'],
  ['a second Subject', 'To: Bob', 'Subject: Other\r\nTo: Bob'],
  ['more of the body', '.a line', 'And this\r\n.a line'],
])('a signed message fails once somebody changed %s', async (_, from, to) => {
  const message = (await signMessage(plain, signer, signedAt)).toString()
  const changed = Buffer.from(message.replace(from, to))

  expect(changed.length).not.toBe(0)
  expect(changed.toString()).not.toBe(message)
  expect((await verified(changed)).map(({ result }) => result)).toEqual(['fail', 'fail'])
})

test('a signed message still passes when spaces were changed on the way, and a field that is not signed', async () => {
  const message = (await signMessage(plain, signer, signedAt)).toString()
  const changed = message
    .replace('folded  and', 'folded\r\n and')
    .replace('Hello  Bob \t', 'Hello Bob')
    .replace('not signed', 'changed')

  expect(changed).not.toBe(message)
  expect(await verified(Buffer.from(changed))).toEqual(bothPass)
})

test('a signed message has no signature without keys, and fails with another key than the published one', async () => {
  const { privateKey } = generateKeyPairSync('ed25519')
  const other = {
    domain: 'example.com',
    keys: [{ selector: 'e1', algorithm: 'ed25519-sha256' as const, privateKey }],
  }

  expect((await signMessage(plain, { ...signer, keys: [] }, signedAt)).equals(plain)).toBe(true)
  expect(await verified(await signMessage(plain, other, signedAt))).toEqual([
    expect.objectContaining({ result: 'fail' }),
  ])
})

test('a signed message names each field that readers see once more than it is there, also one that is not there', () => {
  const names = namesToSign(splitMessage(plain).fields)
  const count = (wanted: string) => names.filter((name) => name === wanted).length

  expect(['from', 'to', 'subject', 'date', 'message-id'].map(count)).toEqual([2, 2, 2, 2, 2])
  expect(['sender', 'cc', 'reply-to', 'list-unsubscribe', 'list-unsubscribe-post', 'list-id'].map(count)).toEqual(
    Array(6).fill(1),
  )
  expect(['x-other', 'references', 'mime-version'].map(count)).toEqual([0, 0, 0])
})

test.each([
  'From',
  'To',
  'Cc',
  'Reply-To',
  'Subject',
  'Date',
  'Sender',
  'List-Id',
  'List-Help',
  'List-Unsubscribe',
  'List-Unsubscribe-Post',
  'List-Subscribe',
  'List-Post',
  'List-Owner',
  'List-Archive',
])('a signed message fails once %s was added, whether it had one or not', async (name) => {
  const message = (await signMessage(plain, signer, signedAt)).toString()
  const below = message.replace('X-Other: ', `${name}: eve@example.net\r\n$&`)

  expect(below).not.toBe(message)
  for (const changed of [below, `${name}: eve@example.net\r\n${message}`]) {
    expect((await verified(Buffer.from(changed))).map(({ result }) => result)).toEqual(['fail', 'fail'])
  }
})

const singles = [
  'From',
  'To',
  'Cc',
  'Subject',
  'Date',
  'Message-ID',
  'Reply-To',
  'MIME-Version',
  'Content-Type',
  'Content-Transfer-Encoding',
]
const given = {
  'In-Reply-To': '<zero@example.org>',
  References: '<zero@example.org> <half@example.com>',
  'List-Id': '<news.example.com>',
  'List-Help': '<mailto:help@example.com>',
  'List-Unsubscribe': '<https://example.com/u>',
  'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click',
  'List-Subscribe': '<https://example.com/s>',
  'List-Post': '<mailto:news@example.com>',
  'List-Owner': '<mailto:owner@example.com>',
  'List-Archive': '<https://example.com/a>',
  'Feedback-ID': 'news:example.com',
  'Auto-Submitted': 'auto-generated',
}

async function compose(): Promise<string> {
  const recipients = [
    { position: 0, kind: 'to' as const, name: 'Ann', address: 'ann@example.org' },
    { position: 1, kind: 'cc' as const, name: 'Bob', address: 'bob@example.org' },
  ]
  const content = { replyTo: ['help@example.com'], headers: given }
  return (await composer.compose(partsOf({ content, recipients }), null)).toString('latin1')
}

const resultsOf = async (message: string) =>
  (await verified(Buffer.from(message, 'latin1'))).map(({ result }) => result)

test('the signatures of a message with everything in its header pass', async () => {
  expect(await resultsOf(await compose())).toEqual(['pass', 'pass'])
})

test.each([...singles, ...Object.keys(given), 'X-Postern-Id'])(
  'the signatures of a message with everything in its header fail once %s was changed',
  async (name) => {
    const message = await compose()
    const changed = message.replace(new RegExp(`^${name}: `, 'im'), '$&x')

    expect(changed).not.toBe(message)
    expect(await resultsOf(changed)).toEqual(['fail', 'fail'])
  },
)

test.each(singles)(
  'the signatures of a message with everything in its header fail once a second %s was put on top',
  async (name) => {
    expect(await resultsOf(`${name}: x\r\n${await compose()}`)).toEqual(['fail', 'fail'])
  },
)

const tags = (b: string) =>
  [
    ' v=1; a=ed25519-sha256; c=relaxed/relaxed;',
    ' d=football.example.com; i=@football.example.com;',
    ' q=dns/txt; s=brisbane; t=1528637909; h=from : to :',
    ' subject : date : message-id : from : subject : date;',
    ' bh=2jUSOH9NhtVGCQWNr9BrIAPreKQjO6Sn7XIkfJVOzv8=;',
    ` b=${b}`,
  ].join('\r\n')
const message = Buffer.from(
  [
    'From: Joe SixPack <joe@football.example.com>',
    'To: Suzie Q <suzie@shopping.example.net>',
    'Subject: Is dinner ready?',
    'Date: Fri, 11 Jul 2003 21:00:37 -0700 (PDT)',
    'Message-ID: <20030712040037.46341.5F8J@football.example.com>',
    '',
    'Hi.',
    '',
    'We lost the game.  Are you hungry yet?',
    '',
    'Joe.',
    '',
  ].join('\r\n'),
)
const { fields, body } = splitMessage(message)

test('the example of RFC 8463 has the body hash it states', () => {
  expect(createHash('sha256').update(relaxedBody(body)).digest('base64')).toBe(
    '2jUSOH9NhtVGCQWNr9BrIAPreKQjO6Sn7XIkfJVOzv8=',
  )
})

test('the example of RFC 8463 has the signature it states, over what is signed here', () => {
  const names = ['from', 'to', 'subject', 'date', 'message-id', 'from', 'subject', 'date']
  const data = dataToSign(signedHeader(fields, names), tags(''))
  const publicKey = createPublicKey({
    key: { kty: 'OKP', crv: 'Ed25519', x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo' },
    format: 'jwk',
  })
  const signature = Buffer.from(
    '/gCrinpcQOoIfuHNQIbq4pgh9kyIK3AQUdt9OdqQehSwhEIug4D11BusFa3bT3FY5OsU7ZbnKELq+eXdp1Q1Dw==',
    'base64',
  )

  expect(verify(null, createHash('sha256').update(data).digest(), publicKey, signature)).toBe(true)
})
