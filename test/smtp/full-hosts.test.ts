import { expect, test } from 'vitest'
import { startScriptedSmtp } from '../support/scripted-smtp.ts'
import type { SmtpReaction } from '../support/scripted-smtp-session.ts'
import { conversation, relayTo } from './smtp-setup.ts'

/* A host that takes some connections, and refuses further ones. */

const never = new AbortController().signal

test.each<[string, SmtpReaction]>([
  ['421', { reply: '421 4.7.0 Too many connections from you', next: 'drop' }],
  ['an end', { next: 'reset' }],
])('a host with %s gets everything over the connections that work', async (_name, refusal) => {
  await using server = await startScriptedSmtp()
  server.at('connect', ({ connection }) => (connection < 2 ? undefined : refusal))
  const transport = relayTo(server)
  const send = (count: number) =>
    Promise.all(Array.from({ length: count }, () => transport.send(conversation(), never)))

  const outcomes = (await send(20)).flat()
  expect(outcomes.map(({ kind }) => kind)).toEqual(Array(20).fill('accepted'))
  expect(transport.unusable('relay')).toBeNull()
  // It said how many it takes, and is not asked for more at once.
  const { connections } = server
  await send(20)
  expect(server.connections).toBe(connections)
  await transport.close()
  expect(server.messages).toHaveLength(40)
})

test('a host that refuses all it is asked for at once is asked by one, and the others wait no longer', async () => {
  await using server = await startScriptedSmtp()
  server.at('connect', { reply: '421 4.3.2 Not now', next: 'drop' })
  const transport = relayTo(server)
  const sending = Array.from({ length: 10 }, () => transport.send(conversation(), never))
  const outcomes = (await Promise.all(sending)).flat()
  expect(outcomes).toMatchObject(Array(10).fill({ kind: 'deferred', unusable: true, reply: '421 4.3.2 Not now' }))
  expect(server.connections).toBeLessThanOrEqual(5)
  expect([transport.room('single'), transport.unusable('relay')]).toMatchObject([0, { reply: '421 4.3.2 Not now' }])
  await transport.close()
})
