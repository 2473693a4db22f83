import { expect, it } from 'vitest'
import { inTransaction } from '../../server/database/connection.ts'
import { newId } from '../../server/ids.ts'
import { freshRange, priorityOf, priorityOfTurn, rangeOfTurns, secondOf } from '../../server/queue/lanes.ts'
import { startQueue } from '../../server/queue/queue.ts'
import { createTestDatabase } from '../support/database.ts'

const webhook = { slow: false, lane: 1 }

it('tells the second of the first turns that wait: not of what is claimed, slow, tried again or handed back', async () => {
  await using stack = new AsyncDisposableStack()
  const { db, connectionString } = stack.adopt(await createTestDatabase(), (database) => database.drop())
  const onError = (error: Error) => {
    throw error
  }
  const queue = await startQueue({ connectionString, works: false, onError })
  stack.defer(() => queue.stop())
  const now = new Date()
  const put = (priorities: number[]) =>
    inTransaction(db, (trx) =>
      queue.put(
        trx,
        priorities.map((priority) => ({ deliveryId: newId('delivery', now), priority, dueAt: null })),
      ),
    )
  expect(await queue.nextTurns()).toBeNull()
  await put([priorityOf(webhook, null), priorityOf(webhook, now), priorityOf({ ...webhook, slow: true }, null)])
  expect(await queue.nextTurns()).toBeNull()
  const second = secondOf(now)
  await put([second + 9, second + 2, second + 5].map((each) => priorityOfTurn(webhook, each)))
  expect(await queue.nextTurns()).toBe(second + 2)
  expect(await queue.claim(rangeOfTurns(second + 2), 10)).toHaveLength(2)
  expect(await queue.nextTurns()).toBe(second + 5)
  expect(await queue.claim(freshRange, 10)).toHaveLength(2)
  expect(await queue.nextTurns()).toBeNull()
})
