import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { connect, inTransaction } from '../../server/database/connection.ts'
import { startQueue } from '../../server/queue/queue.ts'
import { newId } from '../../server/shared/ids.ts'
import { createTestDatabase } from '../support/database.ts'
import { someFlow } from '../support/flows.ts'

const onError = (error: Error) => {
  throw error
}

test('the queue claims without waiting for the disk, and puts in only what is on it', async () => {
  await using stack = new AsyncDisposableStack()
  const { db, connectionString } = stack.adopt(await createTestDatabase(), (one) => one.drop())
  // The server of the tests waits for no disk at all; sessions of this database do from now on.
  await sql.raw(`ALTER DATABASE ${new URL(connectionString).pathname.slice(1)} SET synchronous_commit = on`).execute(db)
  const ours = connect({ connectionString, max: 1, onError })
  stack.defer(() => ours.destroy())
  const queue = await startQueue({ connectionString, works: true, onError })
  stack.defer(() => queue.stop())
  const deliveryId = newId('delivery', new Date())
  const put = () => inTransaction(ours, (trx) => queue.flows.put(trx, [{ deliveryId, flow: someFlow, dueAt: null }]))
  await put()

  // Every statement of the queue calls this function for the time. It raises an error in a session that waits.
  await sql`
    CREATE OR REPLACE FUNCTION pgboss.job_now() RETURNS timestamptz LANGUAGE plpgsql STABLE AS $$
    BEGIN
      IF current_setting('synchronous_commit') <> 'off' THEN RAISE 'this session waits for the disk'; END IF;
      RETURN now();
    END $$
  `.execute(db)
  // At once, so that all of its sessions are asked.
  const claims = await Promise.all(Array.from({ length: 8 }, () => queue.flows.claim([{ flow: someFlow, count: 1 }])))
  expect(claims.flat().map((claimed) => claimed.deliveryId)).toEqual([deliveryId])
  await expect(put()).rejects.toThrow('this session waits for the disk')
})
