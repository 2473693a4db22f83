import { describe, expect, test } from 'vitest'
import type { Conversation, Outcome } from '../../server/smtp/transport.ts'
import { type ScriptedSmtp, startScriptedSmtp } from '../support/scripted-smtp.ts'
import type { SmtpStage } from '../support/scripted-smtp-session.ts'
import { createTestTimer, type TestTimer } from '../support/timer.ts'
import { conversation, relayTo, sendOnce } from './smtp-setup.ts'

const large = Buffer.from(`Subject: Large\r\n\r\n${`${'x'.repeat(76)}\r\n`.repeat(200_000)}`)

const never = new AbortController().signal

/** Until somebody waits for so long. */
async function waitingFor(timer: TestTimer, ms: number): Promise<void> {
  while (!timer.durations.includes(ms)) await new Promise((resolve) => setImmediate(resolve))
}

test.each<SmtpStage>(['connect', 'ehlo', 'mail', 'rcpt', 'data'])(
  'a line that breaks at %s leaves nothing unknown: the message did not go',
  async (stage) => {
    for (const next of ['drop', 'reset'] as const) {
      await using server = await startScriptedSmtp()
      server.at(stage, { next })

      expect(await sendOnce(relayTo(server))).toMatchObject([
        { kind: 'deferred', reason: 'The mail server closed the connection.', reply: null, unknown: false },
      ])
    }
  },
)

test('a line that breaks while the message goes leaves nothing unknown', async () => {
  await using server = await startScriptedSmtp()
  server.at('content', { next: 'reset' })

  expect(await sendOnce(relayTo(server), conversation({ message: large }))).toMatchObject([
    { kind: 'deferred', unknown: false },
  ])
})

test.each(['drop', 'reset'] as const)(
  'a line that breaks after the message (%s) leaves it unknown whether it was taken',
  async (next) => {
    await using server = await startScriptedSmtp()
    server.at('message', { next })

    expect(await sendOnce(relayTo(server))).toEqual([
      {
        kind: 'deferred',
        reason: 'The mail server closed the connection. It may have taken the message before.',
        reply: null,
        host: '127.0.0.1',
        unknown: true,
        congested: false,
        unusable: false,
      },
    ])
  },
)

test('a line that breaks after the answer changes nothing', async () => {
  await using server = await startScriptedSmtp()
  server.at('message', { reply: '250 2.0.0 Taken', next: 'drop' })

  expect(await sendOnce(relayTo(server))).toMatchObject([{ kind: 'accepted' }])
  expect(server.messages).toHaveLength(1)
})

test.each([
  ['an empty line', '250 2.0.0 Taken\n'],
  ['words', '250 2.0.0 Taken\nGood bye'],
])('a line that breaks over %s behind the answer changes nothing', async (_name, reply) => {
  await using server = await startScriptedSmtp()
  const transport = relayTo(server)
  server.at('message', reply)

  expect(await transport.send(conversation(), never)).toMatchObject([{ kind: 'accepted', reply: '250 2.0.0 Taken' }])
  expect(await transport.send(conversation(), never)).toMatchObject([{ kind: 'accepted', reply: '250 2.0.0 Taken' }])
  expect(server.messages).toHaveLength(2)
  expect(server.connections).toBe(2)
  await transport.close()
})

test('a line that breaks after some recipients were judged keeps what was said of them', async () => {
  await using server = await startScriptedSmtp()
  server.at('rcpt', ({ count }) => (count === 0 ? '550 5.1.1 No such user' : undefined))
  server.at('data', { next: 'drop' })

  expect(await sendOnce(relayTo(server), conversation({ to: ['gone@x.test', 'b@x.test'] }))).toMatchObject([
    { kind: 'bounced', bounceType: 'hard' },
    { kind: 'deferred', unknown: false },
  ])
})

test('a line that breaks with a refusal before all of the message was sent leaves the refusal', async () => {
  await using server = await startScriptedSmtp({ extensions: [] })
  server.at('content', { reply: '552 5.3.4 Too large', next: 'drop' })

  expect(await sendOnce(relayTo(server), conversation({ message: large }))).toMatchObject([
    { kind: 'bounced', bounceType: 'soft', reply: '552 5.3.4 Too large' },
  ])
})

describe('a server that says nothing', () => {
  test.each<[SmtpStage, number, boolean]>([
    ['connect', 60, false],
    ['ehlo', 120, false],
    ['mail', 120, false],
    ['rcpt', 120, false],
    ['data', 120, false],
    ['message', 600, true],
  ])('a server that says nothing at %s is waited for %d seconds', async (stage, seconds, unknown) => {
    await using server = await startScriptedSmtp()
    const timer = createTestTimer()
    server.at(stage, { next: 'silence' })
    const sending = sendOnce(relayTo(server, { startTimer: timer.startTimer }))
    await server.reached(stage)
    await waitingFor(timer, seconds * 1000)
    timer.advance(seconds * 1000 - 1)
    expect(timer.durations).toContain(seconds * 1000)
    timer.advance(1)

    expect(await sending).toMatchObject([
      { kind: 'deferred', reason: expect.stringContaining(`within ${seconds} seconds`), unknown },
    ])
  })

  test('a server that takes no byte of the message is waited for three minutes', async () => {
    await using server = await startScriptedSmtp()
    const timer = createTestTimer()
    server.at('content', () => new Promise(() => undefined))
    const sending = sendOnce(relayTo(server, { startTimer: timer.startTimer }), conversation({ message: large }))
    await server.reached('content')
    await waitingFor(timer, 180_000)
    timer.advance(180_000)

    expect(await sending).toMatchObject([{ kind: 'deferred', unknown: false }])
  })
})

describe('a server that is never quick and never too slow', () => {
  const many = Array.from({ length: 15 }, (_, place) => `${place}@x.test`)
  const small = conversation({ to: many })

  /** To a server that takes two minutes, all but a second, for each recipient. */
  async function sendSlowly(server: ScriptedSmtp, sent: Conversation): Promise<readonly Outcome[]> {
    const timer = createTestTimer()
    server.at('rcpt', () => {
      timer.advance(119_000)
      return undefined
    })
    server.at('message', () => {
      timer.advance(599_000)
      return undefined
    })
    return sendOnce(relayTo(server, { startTimer: timer.startTimer }), sent)
  }

  test('a server that is never quick and never too slow is left after twenty minutes', async () => {
    await using server = await startScriptedSmtp({ extensions: [] })

    const reason = 'The mail server did not take the message within 20 minutes.'
    expect(await sendSlowly(server, small)).toMatchObject(
      many.map(() => ({ kind: 'deferred', reason, unknown: false, congested: false })),
    )
    expect(server.messages).toEqual([])
  })

  test('a server has more time for more bytes', async () => {
    await using server = await startScriptedSmtp({ extensions: [] })

    expect(await sendSlowly(server, { ...small, message: large })).toMatchObject(many.map(() => ({ kind: 'accepted' })))
  })

  test('a slow server has its time for the answer once it has the message', async () => {
    await using server = await startScriptedSmtp({ extensions: [] })

    expect(await sendSlowly(server, conversation({ to: many.slice(0, 9) }))).toMatchObject(
      many.slice(0, 9).map(() => ({ kind: 'accepted' })),
    )
  })

  test('a slow server is given no other transaction afterwards', async () => {
    await using server = await startScriptedSmtp({ extensions: [] })
    const timer = createTestTimer()
    let isFirst = true
    server.at('mail', () => {
      isFirst = true
      return undefined
    })
    server.at('rcpt', () => {
      const reply = isFirst ? undefined : '452 4.5.3 Too many recipients'
      isFirst = false
      return reply
    })
    server.at('message', () => {
      timer.advance(599_000)
      return undefined
    })

    const outcomes = await sendOnce(relayTo(server, { startTimer: timer.startTimer }), small)
    expect(outcomes.map(({ kind }) => kind)).toEqual(many.map((_, place) => (place < 3 ? 'accepted' : 'deferred')))
    expect(server.messages).toHaveLength(3)
  })
})

describe('broken off by the service', () => {
  test('a conversation that the service breaks off before the message has gone ends at once', async () => {
    await using server = await startScriptedSmtp()
    const transport = relayTo(server)
    const breaking = new AbortController()
    server.at('rcpt', { next: 'silence' })
    const sending = transport.send(conversation(), breaking.signal)
    await server.reached('rcpt')
    breaking.abort()

    expect(await sending).toMatchObject([{ kind: 'deferred', unknown: false, congested: false }])
    await transport.close()
  })

  test('the answer to a message that has gone is waited for when the service breaks off', async () => {
    await using server = await startScriptedSmtp()
    const transport = relayTo(server)
    const breaking = new AbortController()
    server.at('message', async () => {
      breaking.abort()
      return undefined
    })

    expect(await transport.send(conversation(), breaking.signal)).toMatchObject([{ kind: 'accepted' }])
    await transport.close()
  })

  test('an answer that does not come is waited for only five seconds when the service breaks off', async () => {
    await using server = await startScriptedSmtp()
    const timer = createTestTimer()
    const transport = relayTo(server, { startTimer: timer.startTimer })
    const breaking = new AbortController()
    server.at('message', { next: 'silence' })
    const sending = transport.send(conversation(), breaking.signal)
    await server.reached('message')
    await waitingFor(timer, 600_000)
    breaking.abort()
    timer.advance(5_000)

    expect(await sending).toMatchObject([{ kind: 'deferred', unknown: true }])
    await transport.close()
  })

  test('a conversation that waits for its turn does not begin', async () => {
    await using server = await startScriptedSmtp()
    const limits = { hostname: 'a.test', concurrency: 1, connectionsPerHost: 1, messagesPerConnection: 1 }
    const transport = relayTo(server, { config: limits })
    const breaking = new AbortController()
    server.at('mail', { next: 'silence' })
    const both = [transport.send(conversation(), breaking.signal), transport.send(conversation(), breaking.signal)]
    await server.reached('mail')
    breaking.abort()

    expect((await Promise.all(both)).flat().map(({ kind }) => kind)).toEqual(['deferred', 'deferred'])
    expect(server.connections).toBe(1)
    await transport.close()
  })
})
