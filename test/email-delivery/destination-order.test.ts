import { setImmediate as settled } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { createHandOverOrder } from '../../server/email-delivery/destination-order.ts'

/** Takes a turn for each of `destinations`. `come` returns the indices of those that have come, in their order. */
function startTurns(destinations: readonly string[]) {
  const order = createHandOverOrder()
  const come: number[] = []
  const turns = destinations.map((destination, index) => {
    const turn = order.join(destination)
    void turn.come.then(() => come.push(index))
    return turn
  })
  return {
    pass: (index: number) => turns[index]?.pass(),
    async come() {
      await settled()
      return come
    },
  }
}

test('a turn comes when the one before it is over', async () => {
  const turns = startTurns(['one.test', 'one.test', 'one.test'])
  expect(await turns.come()).toEqual([0])
  turns.pass(0)
  expect(await turns.come()).toEqual([0, 1])
  turns.pass(1)
  expect(await turns.come()).toEqual([0, 1, 2])
})

test('a turn that is passed early lets the next one overtake nobody', async () => {
  const turns = startTurns(['one.test', 'one.test', 'one.test'])
  turns.pass(1)
  expect(await turns.come()).toEqual([0])
  turns.pass(0)
  expect(await turns.come()).toEqual([0, 1, 2])
})

test('destinations do not wait for each other', async () => {
  const turns = startTurns(['one.test', 'two.test', 'one.test'])
  expect(await turns.come()).toEqual([0, 1])
})

test('a turn comes at once when all before it are over', async () => {
  const order = createHandOverOrder()
  order.join('one.test').pass()
  await settled()
  await expect(order.join('one.test').come).resolves.toBeUndefined()
})
