import { describe, expect, test } from 'vitest'
import type { RelayConfig } from '../../server/smtp/relay-url.ts'
import { type CertificateName, testAuthority } from '../support/certificates.ts'
import { type ScriptedSmtp, startScriptedSmtp } from '../support/scripted-smtp.ts'
import type { SmtpReaction } from '../support/scripted-smtp-session.ts'
import { relayTo, sendOnce } from './smtp-setup.ts'

const login = { user: 'me@sender.test', password: 'pässword' }

function relay(server: ScriptedSmtp, changes: Partial<RelayConfig>) {
  const to: RelayConfig = { host: '127.0.0.1', port: server.port, tls: 'opportunistic', credentials: null, ...changes }
  return relayTo(server, { to: { kind: 'relay', relay: to }, ca: testAuthority() })
}

describe('where TLS is offered and not demanded', () => {
  test.each<CertificateName>(['valid', 'expired', 'other-name', 'self-signed'])(
    'TLS that is offered is used, whatever the certificate: %s',
    async (tls) => {
      await using server = await startScriptedSmtp({ tls })

      expect(await sendOnce(relay(server, {}))).toMatchObject([{ kind: 'accepted' }])
      expect(server.messages).toMatchObject([{ isSecure: true }])
      expect(server.commands.map(({ line }) => line)).toEqual([
        'EHLO postern.test',
        'STARTTLS',
        'EHLO postern.test',
        expect.stringMatching(/^MAIL/),
        expect.stringMatching(/^RCPT/),
        'DATA',
        'QUIT',
      ])
    },
  )

  test('a message goes in the clear, over another connection, when TLS is broken', async () => {
    await using server = await startScriptedSmtp({ tls: 'broken' })

    expect(await sendOnce(relay(server, {}))).toMatchObject([{ kind: 'accepted' }])
    expect(server.messages).toMatchObject([{ isSecure: false, connection: 1 }])
  })

  test.each<[string, SmtpReaction, number]>([
    ['for now', '454 4.7.0 Not now', 0],
    ['for good', '554 5.7.0 No', 0],
    ['with 421 and an end', { reply: '421 4.7.0 Not now', next: 'drop' }, 1],
    ['with 421 and no end', '421 4.7.0 Not now', 1],
    ['by an end', { next: 'drop' }, 1],
    ['by a reset', { next: 'reset' }, 1],
  ])('a message goes in the clear when TLS is refused %s', async (_name, reaction, connection) => {
    await using server = await startScriptedSmtp({ tls: 'valid' })
    server.at('starttls', reaction)

    expect(await sendOnce(relay(server, {}))).toMatchObject([{ kind: 'accepted' }])
    expect(server.messages).toMatchObject([{ isSecure: false, connection }])
    expect(server.connections).toBe(connection + 1)
  })

  test('a message is deferred by what is said to the next connection when a server goes away', async () => {
    await using server = await startScriptedSmtp({ tls: 'valid' })
    server.at('starttls', { reply: '421 4.3.2 Going away', next: 'drop' })
    server.at('connect', ({ count }) => (count === 0 ? undefined : { reply: '421 4.3.2 Gone away', next: 'drop' }))

    expect(await sendOnce(relay(server, {}))).toMatchObject([{ kind: 'deferred', reply: '421 4.3.2 Gone away' }])
    expect(server.connections).toBe(2)
  })

  test('what somebody put before the handshake is not believed', async () => {
    await using server = await startScriptedSmtp({ tls: 'valid', extensions: ['8BITMIME'] })
    server.at('starttls', '220 2.0.0 Go on\n250-mx.test\n250-PIPELINING\n250 SIZE 1')

    expect(await sendOnce(relay(server, {}))).toMatchObject([{ kind: 'accepted' }])
    expect(server.messages).toMatchObject([{ isSecure: true, mailParameters: '' }])
  })
})

describe('where TLS is demanded', () => {
  test('TLS that is demanded is used with a valid certificate', async () => {
    await using server = await startScriptedSmtp({ tls: 'valid' })

    expect(await sendOnce(relay(server, { tls: 'verified' }))).toMatchObject([{ kind: 'accepted' }])
    expect(server.messages).toMatchObject([{ isSecure: true }])
  })

  test.each<[CertificateName | 'broken' | undefined, string]>([
    ['expired', 'No secure connection to the mail server: its certificate has expired.'],
    ['other-name', 'No secure connection to the mail server: its certificate is for another name.'],
    ['self-signed', 'No secure connection to the mail server: its certificate is self-signed.'],
    ['broken', 'No secure connection to the mail server: it does not speak TLS.'],
    [undefined, 'The mail server offers no secure connection, and one is demanded.'],
  ])('nothing is sent where it is %s', async (tls, reason) => {
    await using server = await startScriptedSmtp(tls === undefined ? {} : { tls })

    expect(await sendOnce(relay(server, { tls: 'verified', credentials: login }))).toMatchObject([
      { kind: 'deferred', reason, unknown: false },
    ])
    expect(server.connections).toBe(1)
    expect(server.commands.map(({ line }) => line.split(' ')[0])).not.toContain('AUTH')
    expect(server.messages).toEqual([])
  })

  test.each<[string, SmtpReaction, string | null]>([
    ['for now', '454 4.7.0 Not now', '454 4.7.0 Not now'],
    ['for good', '554 5.7.0 No', '554 5.7.0 No'],
    ['with 421 and an end', { reply: '421 4.7.0 Not now', next: 'drop' }, '421 4.7.0 Not now'],
    ['by an end', { next: 'drop' }, null],
    ['by a reset', { next: 'reset' }, null],
  ])('nothing is sent where it is refused %s', async (_name, reaction, reply) => {
    await using server = await startScriptedSmtp({ tls: 'valid', extensions: ['AUTH PLAIN'] })
    server.at('starttls', reaction)

    for (const credentials of [null, login]) {
      expect(await sendOnce(relay(server, { tls: 'verified', credentials }))).toMatchObject([
        { kind: 'deferred', reply, unknown: false },
      ])
    }
    expect(server.connections).toBe(2)
    expect(server.commands.map(({ line }) => line.split(' ')[0])).not.toContain('AUTH')
    expect(server.messages).toEqual([])
  })

  test('TLS is there from the first byte with smtps', async () => {
    await using server = await startScriptedSmtp({ implicitTls: 'valid' })

    expect(await sendOnce(relay(server, { tls: 'implicit' }))).toMatchObject([{ kind: 'accepted' }])
    expect(server.messages).toMatchObject([{ isSecure: true }])
  })

  test('nothing is sent with smtps to a server with a certificate for another name', async () => {
    await using server = await startScriptedSmtp({ implicitTls: 'other-name' })

    expect(await sendOnce(relay(server, { tls: 'implicit' }))).toMatchObject([
      { kind: 'deferred', reason: 'No secure connection to the mail server: its certificate is for another name.' },
    ])
  })
})

describe('a relay that wants to know who sends', () => {
  test.each(['AUTH PLAIN LOGIN', 'AUTH LOGIN', 'AUTH=PLAIN', 'auth cram-md5 plain'])(
    'a relay that wants to know who sends, with %s, is told',
    async (auth) => {
      await using server = await startScriptedSmtp({ tls: 'valid', extensions: [auth, 'PIPELINING'] })

      expect(await sendOnce(relay(server, { tls: 'verified', credentials: login }))).toMatchObject([
        { kind: 'accepted' },
      ])
      expect(server.messages).toMatchObject([{ user: 'me@sender.test', isSecure: true }])
    },
  )

  test('a relay that wants to know who sends is given the password as it is', async () => {
    await using server = await startScriptedSmtp({ tls: 'valid', extensions: ['AUTH PLAIN'] })
    const told: string[] = []
    server.at('auth', ({ argument }) => {
      told.push(argument)
      return undefined
    })
    await sendOnce(relay(server, { tls: 'verified', credentials: login }))

    expect(told).toEqual(['\0me@sender.test\0pässword'])
  })

  test('a relay that refuses the password keeps the message waiting, and nothing it says is passed on', async () => {
    await using server = await startScriptedSmtp({ tls: 'valid', extensions: ['AUTH PLAIN'] })
    server.at('auth', ({ argument }) => `535 5.7.8 Bad credentials: ${argument.replaceAll('\0', ' ')}`)

    const outcomes = await sendOnce(relay(server, { tls: 'verified', credentials: login }))

    expect(outcomes).toEqual([
      {
        kind: 'deferred',
        reason: 'The mail server refused the user or the password.',
        reply: null,
        host: '127.0.0.1',
        unknown: false,
        congested: false,
        unusable: true,
      },
    ])
  })

  test.each<CertificateName | undefined>(['self-signed', undefined])(
    'a relay that wants to know who sends is not told over a line that may be anybody’s: %s',
    async (tls) => {
      await using server = await startScriptedSmtp({ extensions: ['AUTH PLAIN'], ...(tls !== undefined && { tls }) })

      expect(await sendOnce(relay(server, { tls: 'opportunistic', credentials: login }))).toMatchObject([
        { kind: 'deferred', reason: 'The password is told over a secure connection only.' },
      ])
      expect(server.commands.map(({ line }) => line.split(' ')[0])).not.toContain('AUTH')
    },
  )

  test('a relay that wants to know who sends in a way that is not known keeps the message waiting', async () => {
    await using server = await startScriptedSmtp({ tls: 'valid', extensions: ['AUTH GSSAPI'] })

    expect(await sendOnce(relay(server, { tls: 'verified', credentials: login }))).toMatchObject([
      { kind: 'deferred', reason: 'The mail server offers neither AUTH PLAIN nor AUTH LOGIN.' },
    ])
  })
})
