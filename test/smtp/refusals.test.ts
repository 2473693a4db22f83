import { describe, expect, test } from 'vitest'
import { type ScriptedSmtpOptions, startScriptedSmtp } from '../support/scripted-smtp.ts'
import type { SmtpReaction, SmtpStage } from '../support/scripted-smtp-session.ts'
import { conversation, relayTo, sendOnce } from './smtp-setup.ts'

const ways: [string, ScriptedSmtpOptions][] = [
  ['in one piece', { extensions: ['PIPELINING'] }],
  ['command by command', { extensions: [] }],
]

describe.each(ways)('refused %s', (_name, options) => {
  test.each<SmtpStage>(['mail', 'rcpt', 'data', 'message'])(
    'a message that is refused for now at %s is deferred',
    async (stage) => {
      await using server = await startScriptedSmtp(options)
      server.at(stage, '451 4.3.0 Not now')

      expect(await sendOnce(relayTo(server))).toEqual([
        {
          kind: 'deferred',
          reason: 'The mail server cannot take any message now.',
          reply: '451 4.3.0 Not now',
          host: '127.0.0.1',
          unknown: false,
          congested: true,
          unusable: false,
        },
      ])
      expect(server.messages).toEqual([])
    },
  )

  test.each<[SmtpStage, 'hard' | 'soft']>([
    ['mail', 'soft'],
    ['rcpt', 'hard'],
    ['data', 'hard'],
    ['message', 'hard'],
  ])('a message to nobody that is refused for good at %s bounces %s', async (stage, bounceType) => {
    await using server = await startScriptedSmtp(options)
    server.at(stage, '550-5.1.1 There is nobody\n550 5.1.1 of that name')

    expect(await sendOnce(relayTo(server))).toMatchObject([
      { kind: 'bounced', bounceType, reply: '550 5.1.1 There is nobody of that name', host: '127.0.0.1' },
    ])
  })

  test('some recipients are taken and others refused, each for itself', async () => {
    await using server = await startScriptedSmtp(options)
    server.at('rcpt', ({ argument }) => {
      if (argument.startsWith('gone')) return '550 5.1.1 No such user'
      return argument.startsWith('busy') ? '450 4.2.1 Busy' : undefined
    })
    const to = ['a@x.test', 'gone@x.test', 'b@x.test', 'busy@x.test']

    expect(await sendOnce(relayTo(server), conversation({ to }))).toMatchObject([
      { kind: 'accepted' },
      { kind: 'bounced', bounceType: 'hard', reply: '550 5.1.1 No such user' },
      { kind: 'accepted' },
      { kind: 'deferred', reply: '450 4.2.1 Busy' },
    ])
    expect(server.messages.map(({ recipients }) => recipients.map(({ address }) => address))).toEqual([
      ['a@x.test', 'b@x.test'],
    ])
  })

  test('a session serves the next message after a refusal at any stage', async () => {
    await using server = await startScriptedSmtp(options)
    const transport = relayTo(server)
    const signal = new AbortController().signal
    const kinds: (string | undefined)[] = []
    for (const stage of ['mail', 'rcpt', 'data', 'message'] as const) {
      for (const reaction of ['450 4.0.0 Later', undefined]) {
        server.at(stage, () => reaction)
        kinds.push((await transport.send(conversation(), signal))[0]?.kind)
      }
    }
    await transport.close()

    expect(kinds).toEqual(['mail', 'rcpt', 'data', 'message'].flatMap(() => ['deferred', 'accepted']))
    expect(server.connections).toBe(1)
    expect(server.messages).toHaveLength(4)
  })
})

test('what is said of a message for several bounces none of them hard', async () => {
  await using server = await startScriptedSmtp()
  server.at('message', '550 5.1.1 One of you does not exist')

  expect(await sendOnce(relayTo(server), conversation({ to: ['a@x.test', 'b@x.test'] }))).toMatchObject([
    { kind: 'bounced', bounceType: 'soft' },
    { kind: 'bounced', bounceType: 'soft' },
  ])
})

test('a server that takes data for nobody is sent none', async () => {
  await using server = await startScriptedSmtp()
  server.at('rcpt', '550 5.1.1 No such user')
  server.at('data', '354 Go on')

  expect(await sendOnce(relayTo(server))).toMatchObject([{ kind: 'bounced', bounceType: 'hard' }])
  expect(server.messages).toEqual([])
  expect(server.connections).toBe(1)
  expect(server.commands.map(({ line }) => line).slice(-2)).toEqual(['RSET', 'QUIT'])
})

test('recipients that are too many for one transaction follow in the next', async () => {
  await using server = await startScriptedSmtp()
  let taken = 0
  server.at('mail', () => {
    taken = 0
    return undefined
  })
  server.at('rcpt', ({ argument }) => {
    if (argument.startsWith('gone')) return '550 5.1.1 No such user'
    taken += 1
    return taken > 2 ? '452 4.5.3 Too many recipients' : undefined
  })
  const to = ['a@x.test', 'b@x.test', 'c@x.test', 'gone@x.test', 'd@x.test', 'e@x.test']

  const outcomes = await sendOnce(relayTo(server), conversation({ to }))

  expect(outcomes.map(({ kind }) => kind)).toEqual([
    'accepted',
    'accepted',
    'accepted',
    'bounced',
    'accepted',
    'accepted',
  ])
  expect(server.messages.map(({ recipients }) => recipients.map(({ address }) => address))).toEqual([
    ['a@x.test', 'b@x.test'],
    ['c@x.test', 'd@x.test'],
    ['e@x.test'],
  ])
})

test.each<[string, SmtpReaction]>([
  ['421', { reply: '421 4.7.0 Enough for now', next: 'drop' }],
  ['nothing', { next: 'reset' }],
])(
  'whoever was taken gets no other copy when a session that was kept ends with %s before the rest',
  async (_name, end) => {
    await using server = await startScriptedSmtp()
    const transport = relayTo(server)
    const signal = new AbortController().signal
    await transport.send(conversation({ to: ['before@x.test'] }), signal)
    server.at('rcpt', ({ argument }) => (argument.startsWith('b') ? '452 4.5.3 Too many recipients' : undefined))
    server.at('mail', ({ count }) => (count === 2 ? end : undefined))

    expect(await transport.send(conversation({ to: ['a@x.test', 'b@x.test'] }), signal)).toMatchObject([
      { kind: 'accepted' },
      { kind: 'deferred', unknown: false },
    ])
    await transport.close()
    expect(server.messages.map(({ recipients }) => recipients.map(({ address }) => address))).toEqual([
      ['before@x.test'],
      ['a@x.test'],
    ])
    expect(server.connections).toBe(1)
  },
)

test('who takes no recipient at all is not asked again at once', async () => {
  await using server = await startScriptedSmtp()
  server.at('rcpt', '452 4.5.3 Too many recipients')

  expect(await sendOnce(relayTo(server))).toMatchObject([{ kind: 'deferred', reply: '452 4.5.3 Too many recipients' }])
  expect(server.commands.filter(({ line }) => line.startsWith('MAIL'))).toHaveLength(1)
})

test('a reply that makes no sense is no bounce', async () => {
  await using server = await startScriptedSmtp()
  server.at('data', '250 2.0.0 Why not')

  expect(await sendOnce(relayTo(server))).toMatchObject([
    { kind: 'deferred', reason: 'The mail server gave an answer that means nothing here.', reply: '250 2.0.0 Why not' },
  ])
})

test('421 is the answer for all who got none', async () => {
  await using server = await startScriptedSmtp()
  server.at('rcpt', ({ argument }) =>
    argument.startsWith('b') ? { reply: '421 4.7.0 Too many errors', next: 'drop' } : undefined,
  )
  const to = ['a@x.test', 'b@x.test', 'c@x.test']

  expect(await sendOnce(relayTo(server), conversation({ to }))).toMatchObject(
    to.map(() => ({ kind: 'deferred', reply: '421 4.7.0 Too many errors', congested: true, unknown: false })),
  )
})

test.each<[SmtpStage, string]>([
  ['connect', '554 5.7.1 Go away'],
  ['connect', '421 4.3.2 Not now'],
  ['ehlo', '450 4.0.0 Not now'],
  ['ehlo', '550 5.7.1 Go away'],
])(
  'a relay that lets nobody in at %s with %s keeps the message waiting: it is for its operator to mend',
  async (stage, reply) => {
    await using server = await startScriptedSmtp()
    server.at(stage, reply)
    server.at('helo', reply)

    expect(await sendOnce(relayTo(server))).toMatchObject([{ kind: 'deferred', reply, unusable: true }])
  },
)

test('a relay that is not there keeps the message waiting', async () => {
  const server = await startScriptedSmtp()
  await server.stop()

  expect(await sendOnce(relayTo(server))).toEqual([
    {
      kind: 'deferred',
      reason: 'The mail server refused the connection.',
      reply: null,
      host: '127.0.0.1',
      unknown: false,
      congested: false,
      unusable: true,
    },
  ])
})

test('a relay that does not speak SMTP keeps the message waiting', async () => {
  await using server = await startScriptedSmtp()
  server.at('connect', 'HTTP/1.1 400 Bad Request')

  expect(await sendOnce(relayTo(server))).toMatchObject([
    { kind: 'deferred', reason: 'The server does not speak SMTP: it sent a line without a code.' },
  ])
})

test('a server that knows only HELO is sent to', async () => {
  await using server = await startScriptedSmtp()
  server.at('ehlo', '502 5.5.1 What?')

  expect(await sendOnce(relayTo(server))).toMatchObject([{ kind: 'accepted' }])
  expect(server.messages).toMatchObject([{ mailParameters: '' }])
})

test('what a server cannot take is not sent to it: too many bytes', async () => {
  await using server = await startScriptedSmtp({ extensions: ['PIPELINING', 'SIZE 20'] })

  expect(await sendOnce(relayTo(server))).toMatchObject([
    {
      kind: 'bounced',
      bounceType: 'soft',
      reply: expect.stringMatching(/^552 5\.3\.4 The message has \d+ bytes, and the mail server takes 20\.$/),
      host: '127.0.0.1',
    },
  ])
  expect(server.commands.map(({ line }) => line)).toEqual(['EHLO postern.test', 'QUIT'])
})

test('what a server cannot take keeps nothing from the others: addresses beyond ASCII', async () => {
  await using server = await startScriptedSmtp({ extensions: ['PIPELINING'] })
  const to = ['grüße@x.test', 'b@x.test']

  expect(await sendOnce(relayTo(server), conversation({ to }))).toMatchObject([
    { kind: 'bounced', bounceType: 'soft', reply: expect.stringMatching(/^553 5\.6\.7 /) },
    { kind: 'accepted' },
  ])
  expect(server.messages[0]?.recipients.map(({ address }) => address)).toEqual(['b@x.test'])
})

test.each([
  ['a greeting without an end', 'connect', '220-Hello\n'.repeat(200)],
  ['endless extensions', 'ehlo', '250-X\n'.repeat(200)],
  ['a line without an end', 'ehlo', `250-${'x'.repeat(10_000)}`],
  ['more replies than were asked for', 'mail', '450 4.0.0 Later\n'.repeat(2000)],
] as const)('a server that means harm by %s gets no message and does none', async (_name, stage, reply) => {
  await using server = await startScriptedSmtp()
  server.at(stage, reply)

  expect(await sendOnce(relayTo(server))).toMatchObject([{ kind: 'deferred', unknown: false }])
  expect(server.messages).toEqual([])
})
