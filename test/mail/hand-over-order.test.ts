import { setImmediate as settled } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { createHandOverOrder } from '../../server/mail/hand-over-order.ts'

/** Takes turns for `destinations`, and tells whose have come. */
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

test('has one turn of a destination come when the one before has passed', async () => {
  const turns = startTurns(['one.test', 'one.test', 'one.test'])
  expect(await turns.come()).toEqual([0])
  turns.pass(0)
  expect(await turns.come()).toEqual([0, 1])
  turns.pass(1)
  expect(await turns.come()).toEqual([0, 1, 2])
})

test('has one that passes before its turn let nobody before those ahead of it', async () => {
  const turns = startTurns(['one.test', 'one.test', 'one.test'])
  turns.pass(1)
  expect(await turns.come()).toEqual([0])
  turns.pass(0)
  expect(await turns.come()).toEqual([0, 1, 2])
})

test('has destinations wait for none but themselves', async () => {
  const turns = startTurns(['one.test', 'two.test', 'one.test'])
  expect(await turns.come()).toEqual([0, 1])
})

test('starts anew where all have passed', async () => {
  const order = createHandOverOrder()
  order.join('one.test').pass()
  await settled()
  await expect(order.join('one.test').come).resolves.toBeUndefined()
})
