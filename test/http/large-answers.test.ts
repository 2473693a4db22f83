import { EventEmitter } from 'node:events'
import type { ServerResponse } from 'node:http'
import { expect, test, vi } from 'vitest'
import { createLargeAnswers, type LargeAnswers } from '../../server/http/large-answers.ts'

/** What of an answer matters here: whether and when it is closed. */
class Answer extends EventEmitter {
  closed = false
  destroy(): void {
    this.closed = true
    this.emit('close')
  }
}

/** Asks for a turn, and tells in `order` when it comes, or that it does not. */
function ask(answers: LargeAnswers, accountId: string, name: string, order: string[]): Answer {
  const answer = new Answer()
  answers.enter(accountId, answer as unknown as ServerResponse).then(
    () => order.push(name),
    ({ code }) => order.push(`${name}: ${code}`),
  )
  return answer
}

/** Lets what is resolved be heard of. */
const turn = () => new Promise<void>((resolve) => setImmediate(resolve))

test('an account has one turn at a time, and waits for nobody but itself', async () => {
  const answers = createLargeAnswers({ atOnce: 3 })
  const order: string[] = []
  const [first] = [1, 2, 3].map((number) => ask(answers, 'a', `a${number}`, order))
  ask(answers, 'b', 'b1', order)
  await turn()
  expect(order).toEqual(['a1', 'b1'])
  first?.destroy()
  await turn()
  expect(order).toEqual(['a1', 'b1', 'a2'])
})

test('all accounts together have as many turns as there are, in the order in which they came', async () => {
  const answers = createLargeAnswers({ atOnce: 2 })
  const order: string[] = []
  const [a, b] = ['a', 'b', 'c', 'd'].map((account) => ask(answers, account, account, order))
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
  const first = ask(answers, 'a', 'a', order)
  ask(answers, 'b', 'b', order).destroy()
  ask(answers, 'c', 'c', order)
  first.destroy()
  await turn()
  expect(order.toSorted()).toEqual(['a', 'b: unavailable', 'c'])
})

test('who waits too long is told to try again, and who does not read is cut off', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  try {
    const answers = createLargeAnswers({ atOnce: 1, patienceMs: 10_000, readWithinMs: 25_000 })
    const order: string[] = []
    const first = ask(answers, 'a', 'a', order)
    ask(answers, 'b', 'b', order)
    vi.advanceTimersByTime(9_999)
    await turn()
    expect(order).toEqual(['a'])
    vi.advanceTimersByTime(1)
    await turn()
    expect(order).toEqual(['a', 'b: unavailable'])
    vi.advanceTimersByTime(14_999)
    expect(first.closed).toBe(false)
    ask(answers, 'c', 'c', order)
    vi.advanceTimersByTime(1)
    await turn()
    expect([first.closed, order]).toEqual([true, ['a', 'b: unavailable', 'c']])
  } finally {
    vi.useRealTimers()
  }
})
