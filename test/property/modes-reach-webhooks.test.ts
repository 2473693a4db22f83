import fc from 'fast-check'
import { sql } from 'kysely'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type EventTypeName, eventType, eventTypeNames } from '../../contract/event-types.ts'
import { type Mode, modes } from '../../contract/mode.ts'
import { inTransaction } from '../../server/database/connection.ts'
import { fanOutBatch } from '../../server/fan-out/fan-out.ts'
import { systemClock } from '../../server/lib/clock.ts'
import { createOutbox, type NewEvent } from '../../server/outbox/append.ts'
import { type Queue, startQueue } from '../../server/queue/queue.ts'
import { newId } from '../../server/shared/ids.ts'
import { finishEvents } from '../../server/webhook-delivery/settlement/finish-events.ts'
import { receives } from '../../server/webhook-delivery/subscription.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { asQueued, takingFor } from '../support/flows.ts'

/*
 * Whatever events of both modes there are, and whatever webhooks: an event has a delivery to those webhooks that
 * receive it, and to no other.
 */

let database: TestDatabase
let queue: Queue

beforeAll(async () => {
  database = await createTestDatabase()
  const { connectionString } = database
  queue = await startQueue({
    connectionString,
    works: false,
    onError: (error) => {
      throw error
    },
  })
})
beforeEach(() => sql`TRUNCATE webhooks, webhook_urls, events, outbox_rows, deliveries`.execute(database.db))
afterAll(async () => {
  await queue?.stop()
  await database?.drop()
})

const outbox = createOutbox({ clock: systemClock, wake: () => undefined })
const mode = fc.constantFrom<Mode>(...modes)
const type = fc.constantFrom<EventTypeName>(...eventTypeNames)
const account = fc.integer({ min: 0, max: 1 })

const webhook = fc.record({
  account,
  mode,
  types: fc.uniqueArray(type, { minLength: 1, maxLength: eventTypeNames.length }),
  enabled: fc.boolean(),
})
/** The events that one transaction appends. */
const append = fc.record({ account, mode, types: fc.array(type, { minLength: 1, maxLength: 5 }) })
/** How many deliveries of each batch are kept, and not put into the queue. */
const rooms = fc.array(fc.integer({ min: 0, max: 4 }), { minLength: 1, maxLength: 5 })

type World = {
  webhooks: { account: number; mode: Mode; types: EventTypeName[]; enabled: boolean }[]
  appends: { account: number; mode: Mode; types: EventTypeName[] }[]
  rooms: number[]
}

const world: fc.Arbitrary<World> = fc.record({
  webhooks: fc.array(webhook, { minLength: 1, maxLength: 8 }),
  appends: fc.array(append, { minLength: 1, maxLength: 6 }),
  rooms,
})

function eventOf(name: EventTypeName): NewEvent {
  return { type: name, data: eventType(name).exampleBody.data } as NewEvent
}

/** Returns whether a webhook receives an event, by docs/reference/test-and-live.md. Independent of the service. */
function isWanted(to: { mode: Mode; events: readonly string[] }, event: { mode: Mode; type: EventTypeName }): boolean {
  const isShared = /^(subscriber|contact|domain)\./.test(event.type)
  return to.events.includes(event.type) && (isShared || to.mode === event.mode)
}

test('an event has a delivery to each webhook that receives it, and to no other', async () => {
  const { db } = database
  await fc.assert(
    fc.asyncProperty(world, async ({ webhooks, appends, rooms: sizes }) => {
      const accounts = [newId('account', new Date()), newId('account', new Date())]
      const accountOf = (index: number) => accounts[index] ?? expect.fail('no such account')
      await db
        .insertInto('accounts')
        .values(accounts.map((id) => ({ id, name: 'Test', plan: 'scale' })))
        .execute()
      const hooks = webhooks.map((hook) => ({ ...hook, id: newId('webhook', new Date()), events: hook.types }))
      await db
        .insertInto('webhooks')
        .values(
          hooks.map((hook) => ({
            id: hook.id,
            account_id: accountOf(hook.account),
            mode: hook.mode,
            url: 'https://example.com/',
            events: hook.events,
            secret: Buffer.from('sealed'),
            status: hook.enabled ? ('enabled' as const) : ('disabled' as const),
            disabled_reason: hook.enabled ? null : ('manual' as const),
          })),
        )
        .execute()
      const events: { id: string; account: number; mode: Mode; type: EventTypeName }[] = []
      for (const { account: owner, mode: cause, types } of appends) {
        const scope = { accountId: accountOf(owner), mode: cause }
        const ids = await inTransaction(db, (trx) => outbox.append(trx, scope, types.map(eventOf)))
        types.forEach((name, index) => {
          events.push({ id: ids[index] ?? '', account: owner, mode: cause, type: name })
        })
      }

      for (let batch = 0; ; batch++) {
        const taking = takingFor(sizes[batch % sizes.length] ?? 0)
        const { events: taken, leased } = await fanOutBatch({ db, queue, clock: systemClock, taking })
        if (taken === 0) break
        await finishEvents({ db, queue }, taking.lease, leased.map(asQueued))
      }

      const expected = events.flatMap((event) =>
        hooks
          .filter((hook) => hook.enabled && hook.account === event.account && isWanted(hook, event))
          .map((hook) => `${event.id} ${hook.id}`),
      )
      const rows = await db.selectFrom('deliveries').select(['event_id', 'webhook_id', 'account_id']).execute()
      const made = rows.filter((row) => accounts.includes(row.account_id))
      expect(made.map((row) => `${row.event_id} ${row.webhook_id}`).toSorted()).toEqual(expected.toSorted())
      for (const event of events) {
        for (const hook of hooks) expect(receives(hook, event)).toBe(isWanted(hook, event))
      }
    }),
    { numRuns: 40 },
  )
})
