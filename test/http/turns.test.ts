import { EventEmitter } from 'node:events'
import { expect, test } from 'vitest'
import { type Caller, setCaller } from '../../server/http/caller.ts'
import type { RouteInput } from '../../server/http/route-handler.ts'
import { createRenderingTurns, createRequestTurns, type InTurns } from '../../server/http/turns.ts'
import { patienceMs } from '../support/patience.ts'

/** A request of an account, whose work ends when it is told to. */
function ask(inTurns: InTurns, accountId: string, key?: string) {
  const { promise: work, resolve: end } = Promise.withResolvers<void>()
  const res = Object.assign(new EventEmitter(), { closed: false })
  const input = { req: { get: () => key }, res } as unknown as RouteInput
  setCaller(input.req, { accountId } as Caller)
  const asked = { end, hasBegun: false, code: '', leave: () => void res.emit('close') }
  inTurns(async () => {
    asked.hasBegun = true
    await work
  })(input).catch(({ code }) => {
    asked.code = code
  })
  return asked
}

/** Lets what is resolved be heard of. */
const turn = () => new Promise<void>((resolve) => setImmediate(resolve))
const begun = (all: readonly { hasBegun: boolean }[]) => all.map(({ hasBegun }) => hasBegun)

test('an account has one turn at a time, and a few are all there are', async () => {
  const inTurns = createRequestTurns({ atOnce: 2 })
  const all = ['a', 'a', 'b', 'c'].map((account) => ask(inTurns, account))
  await turn()
  expect(begun(all)).toEqual([true, false, true, false])
  all[0]?.end()
  await turn()
  expect(begun(all)).toEqual([true, true, true, false])
  all[2]?.end()
  await turn()
  expect(begun(all)).toEqual([true, true, true, true])
})

test('a client that leaves while it waits gives up its turn', async () => {
  const inTurns = createRequestTurns({ atOnce: 1 })
  const all = ['a', 'b', 'c'].map((account) => ask(inTurns, account))
  all[1]?.leave()
  all[0]?.end()
  await turn()
  expect(begun(all)).toEqual([true, false, true])
  expect(all[1]?.code).toBe('unavailable')
})

test('a request behind too many is refused at once', async () => {
  const inTurns = createRequestTurns({ atOnce: 1, waiting: 2 })
  const all = ['a', 'a', 'a', 'b'].map((account) => ask(inTurns, account))
  await turn()
  expect(all.map(({ code }) => code)).toEqual(['', '', 'unavailable', ''])
})

test('a request that waits too long is refused', async () => {
  const inTurns = createRequestTurns({ atOnce: 1, patienceMs: 1 })
  const all = ['a', 'a', 'b'].map((account) => ask(inTurns, account))
  await expect
    .poll(() => all.map(({ code }) => code), { timeout: patienceMs })
    .toEqual(['', 'unavailable', 'unavailable'])
})

test('requests that render in a transaction take turns, and others do not', async () => {
  const inTurns = createRenderingTurns(4)
  const all = ['a', 'a', 'a', 'b', 'b', 'c'].map((account) => ask(inTurns, account, 'key'))
  const others = ['a', 'a'].map((account) => ask(inTurns, account))
  await turn()
  expect(begun(all)).toEqual([true, true, false, true, true, false])
  expect(begun(others)).toEqual([true, true])
  all[0]?.end()
  await turn()
  expect(begun(all)).toEqual([true, true, true, true, true, false])
})
