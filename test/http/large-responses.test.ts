import { EventEmitter } from 'node:events'
import type { ServerResponse } from 'node:http'
import { expect, test, vi } from 'vitest'
import { createLargeAnswers, type LargeResponses } from '../../server/http/large-responses.ts'

/** The part of a response that matters here: whether and when it is closed. */
class Answer extends EventEmitter {
  closed = false
  destroy(): void {
    this.closed = true
    this.emit('close')
  }
}

type Asked = { accountId: string; name?: string; work?: Promise<void> }

/** Asks for a turn, and tells in `order` when it comes, or that it does not. */
function ask(
  answers: LargeResponses,
  { accountId, name = accountId, work = Promise.resolve() }: Asked,
  order: string[],
) {
  const answer = new Answer()
  const request = { accountId, res: answer as unknown as ServerResponse }
  answers
    .during(request, async (enter) => {
      await enter()
      order.push(name)
      await work
    })
    .catch(({ code }) => order.push(`${name}: ${code}`))
  return answer
}

/** Lets what is resolved be heard of. */
const turn = () => new Promise<void>((resolve) => setImmediate(resolve))

test('an account has one turn at a time, and waits for nobody but itself', async () => {
  const answers = createLargeAnswers({ atOnce: 3 })
  const order: string[] = []
  const [first] = [1, 2, 3].map((number) => ask(answers, { accountId: 'a', name: `a${number}` }, order))
  ask(answers, { accountId: 'b', name: 'b1' }, order)
  await turn()
  expect(order).toEqual(['a1', 'b1'])
  first?.destroy()
  await turn()
  expect(order).toEqual(['a1', 'b1', 'a2'])
})

test('all accounts together have as many turns as there are, in the order in which they came', async () => {
  const answers = createLargeAnswers({ atOnce: 2 })
  const order: string[] = []
  const [a, b] = ['a', 'b', 'c', 'd'].map((account) => ask(answers, { accountId: account }, order))
  await turn()
  expect(order).toEqual(['a', 'b'])
  b?.destroy()
  a?.destroy()
  await turn()
  expect(order).toEqual(['a', 'b', 'c', 'd'])
})

test('a client that leaves while it waits is forgotten', async () => {
  const answers = createLargeAnswers({ atOnce: 1 })
  const order: string[] = []
  const first = ask(answers, { accountId: 'a' }, order)
  ask(answers, { accountId: 'b' }, order).destroy()
  ask(answers, { accountId: 'c' }, order)
  first.destroy()
  await turn()
  expect(order.toSorted()).toEqual(['a', 'b: unavailable', 'c'])
})

test('a turn lasts as long as its work, also when the client has left', async () => {
  const answers = createLargeAnswers()
  const order: string[] = []
  const { promise, resolve } = Promise.withResolvers<void>()
  const first = ask(answers, { accountId: 'a', name: 'a1', work: promise }, order)
  ask(answers, { accountId: 'a', name: 'a2' }, order)
  await turn()
  first.destroy()
  await turn()
  expect(order).toEqual(['a1'])
  resolve()
  await turn()
  expect(order).toEqual(['a1', 'a2'])
})

test('who waits too long is told to try again, and who does not read is cut off', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  try {
    const answers = createLargeAnswers({ atOnce: 1, patienceMs: 10_000, readWithinMs: 25_000 })
    const order: string[] = []
    const first = ask(answers, { accountId: 'a' }, order)
    ask(answers, { accountId: 'b' }, order)
    await turn()
    vi.advanceTimersByTime(9_999)
    await turn()
    expect(order).toEqual(['a'])
    vi.advanceTimersByTime(1)
    await turn()
    expect(order).toEqual(['a', 'b: unavailable'])
    vi.advanceTimersByTime(14_999)
    expect(first.closed).toBe(false)
    ask(answers, { accountId: 'c' }, order)
    vi.advanceTimersByTime(1)
    await turn()
    expect([first.closed, order]).toEqual([true, ['a', 'b: unavailable', 'c']])
  } finally {
    vi.useRealTimers()
  }
})
