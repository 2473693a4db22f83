import { afterAll, beforeAll, expect, test } from 'vitest'
import { inTransaction } from '../../server/database/connection.ts'
import type { ClaimedEmail, FinishedEmail } from '../../server/queue/email-queue.ts'
import { turnsPerSecond } from '../../server/queue/fair-queuing.ts'
import { type Queue, startQueue } from '../../server/queue/queue.ts'
import { newId } from '../../server/shared/ids.ts'
import { type Lane, lanes } from '../../server/shared/lanes.ts'
import { createTestTime } from '../support/clock.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'

const { clock, queueClock, sessionOptions } = createTestTime(new Date('2026-03-01T09:30:00.000Z'))
let database: TestDatabase
let queue: Queue

beforeAll(async () => {
  database = await createTestDatabase({ sessionOptions })
  queue = await startQueue({
    connectionString: database.connectionString,
    works: false,
    clock: queueClock,
    sessionOptions,
    onError: (error) => {
      throw error
    },
  })
})
afterAll(async () => {
  await queue.stop()
  await database.drop()
})

const inSeconds = (seconds: number) => new Date(clock.now().getTime() + seconds * 1_000)

async function put(lane: Lane, dueAt: Date | null = null): Promise<string> {
  const emailId = newId('email', clock.now())
  const email = { emailId, accountId: newId('account', clock.now()), dueAt, lane }
  await inTransaction(database.db, (trx) => queue.emails.put(trx, [email]))
  return emailId
}

function finish(claimed: readonly ClaimedEmail[], nextAt: FinishedEmail['nextAt']): Promise<void> {
  return inTransaction(database.db, (trx) =>
    queue.emails.finish(
      trx,
      claimed.map((one) => ({ claimed: one, nextAt })),
    ),
  )
}

const idsOf = (claimed: readonly ClaimedEmail[]) => claimed.map(({ emailId }) => emailId)

test.each(lanes)('an email of the lane %s stays in it when it is put back, tried again or scheduled', async (lane) => {
  const other = lane === 'single' ? 'bulk' : 'single'
  const id = await put(lane)
  const beside = await put(other)
  const first = await queue.emails.claim('fresh', lane, 10)
  expect(idsOf(first)).toEqual([id])
  await finish(first, 'in-place')
  const second = await queue.emails.claim('fresh', lane, 10)
  expect(idsOf(second)).toEqual([id])
  await finish(second, inSeconds(60))
  await queueClock.setTime(inSeconds(61).getTime())
  expect(await queue.emails.claim('due', other, 10)).toEqual([])
  const third = await queue.emails.claim('due', lane, 10)
  expect(idsOf(third)).toEqual([id])
  await finish(third, null)

  const scheduled = await put(lane, inSeconds(60))
  await queueClock.setTime(inSeconds(61).getTime())
  expect(await queue.emails.claim('due', other, 10)).toEqual([])
  const last = await queue.emails.claim('due', lane, 10)
  expect(idsOf(last)).toEqual([scheduled])

  const ofOther = await queue.emails.claim('fresh', other, 10)
  expect(idsOf(ofOther)).toEqual([beside])
  await finish([...last, ...ofOther], null)
})

test.each(lanes)('an account with a few emails in the lane %s is not behind one with very many', async (lane) => {
  const putMany = async (accountId: string, count: number) => {
    const emails = Array.from({ length: count }, () => {
      return { emailId: newId('email', clock.now()), accountId, dueAt: null, lane }
    })
    await inTransaction(database.db, (trx) => queue.emails.put(trx, emails))
    return emails.map(({ emailId }) => emailId)
  }
  const [many, few] = [newId('account', clock.now()), newId('account', clock.now())]
  await putMany(many, 600)
  // Batch after batch, as they come.
  const ids = [...(await putMany(few, 30)), ...(await putMany(few, 30))]
  await putMany(many, 600)
  const claimed = await queue.emails.claim('fresh', lane, 2 * turnsPerSecond)
  expect(idsOf(claimed)).toEqual(expect.arrayContaining(ids))
  await finish(claimed, null)
  await finish(await queue.emails.claim('fresh', lane, 2_000), null)
})
