import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Db, inTransaction, type Trx } from '../../server/database/connection.ts'
import { takeEvents } from '../../server/fan-out/take-events.ts'
import { systemClock } from '../../server/lib/clock.ts'
import { createOutbox } from '../../server/outbox/append.ts'
import { givePositions } from '../../server/outbox/positions.ts'
import { installQueue } from '../../server/queue/queue.ts'
import { newId } from '../../server/shared/ids.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { plannerStates, rowsRead } from '../support/rows-read.ts'
import { live } from '../support/scope.ts'

let database: TestDatabase
let db: Db
const floodSize = 6_000
/** The first of them and the last have a flood in the outbox, the others an event each. */
const accountIds: string[] = []
const outbox = createOutbox({ clock: systemClock, wake: () => {} })
const data = { subscriberId: newId('subscriber', new Date()), audienceId: newId('audience', new Date()) }

async function append(accountId: string, count: number): Promise<void> {
  const event = { type: 'contact.deleted', data } as const
  await inTransaction(db, (trx) => outbox.append(trx, live(accountId), Array(count).fill(event)))
}

beforeAll(async () => {
  database = await createTestDatabase()
  db = database.db
  await installQueue(database.connectionString, () => undefined)
  for (let count = 0; count < 40; count++) accountIds.push(newId('account', new Date()))
  await db
    .insertInto('accounts')
    .values(accountIds.map((id) => ({ id, name: 'Test', plan: 'scale' })))
    .execute()
  for (const id of accountIds) await append(id, id === accountIds[0] || id === accountIds.at(-1) ? floodSize : 1)
  await givePositions(db, accountIds[0] ?? '')
})
afterAll(() => database.drop())

/** Takes events by kind. For what floods there is no room. */
async function takeByKind(handle: Db, above = '') {
  const limits = [accountIds[0], accountIds.at(-1)].map((accountId = '') => ({
    accountId,
    mode: 'live' as const,
    type: 'contact.deleted',
    max: 0,
  }))
  const behind = { accountId: above, mode: 'live', type: 'contact.deleted' } as const
  return takeEvents(handle as unknown as Trx, { reading: { from: 'kinds', behind }, limits })
}

describe.each(plannerStates('^(events|outbox)'))('where PostgreSQL %s', (_, statement) => {
  beforeAll(() => sql.raw(statement).execute(db))

  test('a batch by kind reads few events of those that flood the outbox', async () => {
    let taken: readonly string[] = []
    const read = await rowsRead(db, async (handle) => {
      taken = (await takeByKind(handle)).rows.map((row) => row.account_id)
    })
    expect(taken).toEqual(accountIds.slice(1, -1))
    // Each kind is found, and each event that is taken is read twice, with its body.
    expect(read).toBeLessThan(300)
  })

  test('a batch by kind goes on behind a kind without reading its events', async () => {
    const read = await rowsRead(db, async (handle) => {
      expect((await takeByKind(handle, accountIds.at(-2))).rows).toEqual([])
    })
    expect(read).toBeLessThan(10)
  })
})
