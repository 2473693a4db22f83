import { expect, test } from 'vitest'
import type { Lane } from '../../server/shared/lanes.ts'
import type { TransportConfig } from '../../server/smtp/create-transport.ts'
import { mostInBulk } from '../../server/smtp/host-connection-limit.ts'
import { type ScriptedSmtp, startScriptedSmtp } from '../support/scripted-smtp.ts'
import { config, conversation, relayTo } from './smtp-setup.ts'

const never = new AbortController().signal

/** Sends over a transport whose server keeps each message waiting until it is let go on. */
function begin(server: ScriptedSmtp, limits: Partial<TransportConfig>) {
  const gates: (() => void)[] = []
  server.at('message', async () => {
    const gate = Promise.withResolvers<void>()
    gates.push(gate.resolve)
    await gate.promise
    return undefined
  })
  const transport = relayTo(server, { config: { ...config, ...limits } })
  const taken: Lane[] = []
  return {
    transport,
    taken,
    async send(lane: Lane) {
      await transport.send(conversation({ lane }), never)
      taken.push(lane)
    },
    /** Lets the messages from number `from` up to `to` go on, each when it has arrived. */
    async letGo(from: number, to: number) {
      for (let number = from; number <= to; number += 1) {
        await server.reached('message', number)
        gates[number - 1]?.()
      }
    },
  }
}

test('what is sent singly gets the next free connection, before all that waits in bulk', async () => {
  await using server = await startScriptedSmtp()
  const { transport, send, taken, letGo } = begin(server, { connectionsPerHost: 1 })
  const sending = [send('bulk'), send('bulk'), send('bulk'), send('single')]
  await letGo(1, 4)
  await Promise.all(sending)
  await transport.close()
  expect(taken).toEqual(['bulk', 'single', 'bulk', 'bulk'])
})

test('of a host that both wait for, bulk gets every fourth connection', async () => {
  await using server = await startScriptedSmtp()
  const { transport, send, taken, letGo } = begin(server, { connectionsPerHost: 1 })
  const singles = Array.from({ length: 8 }, () => 'single' as const)
  const sending = (['single', 'bulk', 'bulk', ...singles] as const).map(send)
  await letGo(1, 11)
  await Promise.all(sending)
  await transport.close()
  expect(taken.map((lane) => lane[0]).join('')).toBe('ssssbsssbss')
})

test.each([
  ['of a host', { connectionsPerHost: 10 }],
  ['of the process', { connectionsPerHost: 20, concurrency: 10 }],
])('bulk leaves a tenth of the connections %s to what is sent singly', async (_, limits) => {
  await using server = await startScriptedSmtp()
  const { transport, send, taken, letGo } = begin(server, limits)
  const bulk = Array.from({ length: 12 }, () => send('bulk'))
  await server.reached('message', 9)
  const single = send('single')
  // The tenth message is the one that is sent singly.
  await letGo(10, 10)
  await single
  expect(taken).toEqual(['single'])
  await letGo(1, 9)
  await letGo(11, 13)
  await Promise.all(bulk)
  await transport.close()
  expect(server.mostOpen).toBe(10)
})

test('the room of what is sent singly does not shrink by what waits in bulk', async () => {
  await using server = await startScriptedSmtp()
  const { transport, send, letGo } = begin(server, { connectionsPerHost: 5 })
  const sending = Array.from({ length: 10 }, () => send('bulk'))
  await server.reached('message', 4)
  expect(transport.roomFor('relay', 'bulk')).toBe(0)
  expect(transport.roomFor('relay', 'single')).toBe(6)
  sending.push(send('single'))
  expect(transport.roomFor('relay', 'single')).toBe(5)
  await letGo(1, 11)
  await Promise.all(sending)
  await transport.close()
})

test('bulk may use all connections of a host that allows fewer than four', () => {
  expect([1, 2, 3, 4, 5, 10, 11, 20, 50].map(mostInBulk)).toEqual([1, 2, 3, 3, 4, 9, 9, 18, 45])
})
