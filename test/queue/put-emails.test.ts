import { sql } from 'kysely'
import { PgBoss } from 'pg-boss'
import { expect, test } from 'vitest'
import { inTransaction } from '../../server/database/connection.ts'
import { startQueue } from '../../server/queue/queue.ts'
import { newId, uuidOf } from '../../server/shared/ids.ts'
import { createTestDatabase } from '../support/database.ts'

const onError = (error: Error) => {
  throw error
}

test.each([
  ['at once', null],
  ['later', new Date('2126-03-01T09:30:00.000Z')],
])('putting in an email that is due %s leaves its job as pg-boss leaves one', async (_, dueAt) => {
  await using stack = new AsyncDisposableStack()
  const { db, connectionString } = stack.adopt(await createTestDatabase(), (one) => one.drop())
  const queue = await startQueue({ connectionString, works: false, onError })
  stack.defer(() => queue.stop())
  const emailId = newId('email', new Date())
  await inTransaction(db, (trx) => queue.emails.put(trx, [{ emailId, accountId: newId('account', new Date()), dueAt }]))

  const boss = new PgBoss({ connectionString, schedule: false, supervise: false })
  stack.defer(() => boss.stop({ graceful: false }))
  await boss.start()
  const { rows: put } = await jobs()
  const priority = Number(put[0]?.job.priority)
  const theirs = await boss.send('emails', null, { priority, ...(dueAt !== null && { startAfter: dueAt }) })

  const { rows } = await jobs()
  const [ours, other] = [uuidOf(emailId), theirs].map((id) => {
    const row = rows.find((one) => one.job.id === id)
    if (row === undefined) throw new Error('there is no such job')
    const { id: _id, created_on: _created, start_after: _start, keep_until: _keep, ...job } = row.job
    return { ...row, job }
  })
  expect(ours).toEqual(other)
  expect(ours?.job.state).toBe('created')

  function jobs() {
    return sql<{ job: Record<string, unknown>; untilKept: number; isDue: boolean; dueAt: Date | null }>`
      SELECT to_jsonb(job) AS job, EXTRACT(EPOCH FROM keep_until - start_after)::int AS "untilKept",
        start_after <= now() AS "isDue", nullif(start_after, created_on) AS "dueAt"
      FROM pgboss.job WHERE name = 'emails'
    `.execute(db)
  }
})

test('putting in an email which is in already fails the transaction', async () => {
  await using stack = new AsyncDisposableStack()
  const { db, connectionString } = stack.adopt(await createTestDatabase(), (one) => one.drop())
  const queue = await startQueue({ connectionString, works: false, onError })
  stack.defer(() => queue.stop())
  const email = { emailId: newId('email', new Date()), accountId: newId('account', new Date()), dueAt: null }
  const putIn = () => inTransaction(db, (trx) => queue.emails.put(trx, [email]))
  await putIn()
  await expect(putIn()).rejects.toThrow('duplicate key')
})
