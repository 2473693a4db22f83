import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { DeliveryListQuery } from '../../contract/deliveries.ts'
import { newId } from '../../server/shared/ids.ts'
import { type Engine, startEngine } from '../support/engine.ts'
import { live } from '../support/scope.ts'

let engine: Engine
let webhookId: string

const statuses = ['succeeded', 'failed', 'canceled', 'pending'] as const
const types = ['contact.deleted', 'contact.created'] as const
const count = 24

/** When the one of this index was created: one a minute. */
function createdAt(index: number): Date {
  return new Date(Date.UTC(2026, 3, 1, 0, index))
}

beforeAll(async () => {
  engine = await startEngine()
  webhookId = await engine.addWebhook('http://127.0.0.1:9/', [])
  const otherId = await engine.addWebhook('http://127.0.0.1:9/', [])
  for (let index = 0; index < count; index++) {
    for (const webhook_id of [webhookId, otherId]) {
      const status = statuses[index % statuses.length] ?? 'failed'
      await engine.db
        .insertInto('deliveries')
        .values({
          id: newId('delivery', createdAt(index)),
          account_id: engine.accountId,
          webhook_id,
          event_id: newId('event', createdAt(index)),
          event_type: types[index % types.length] ?? 'contact.deleted',
          status,
          attempt_count: index,
          created_at: createdAt(index),
          completed_at: status === 'pending' ? null : createdAt(index),
          next_attempt_at: null,
        })
        .execute()
    }
  }
})
afterAll(() => engine.stop())

/** The indexes of what a query finds, through all its pages. */
async function find(query: Partial<DeliveryListQuery>): Promise<number[]> {
  const found: number[] = []
  let cursor: string | null | undefined
  do {
    const page = await engine.deliveries.list(engine.db, live(engine.accountId), webhookId, {
      limit: 5,
      ...query,
      ...(cursor && { cursor }),
    })
    found.push(...page.data.map((delivery) => delivery.attemptCount))
    cursor = page.nextCursor
  } while (cursor !== null)
  return found
}

const all = Array.from({ length: count }, (_, index) => count - 1 - index)

describe('the deliveries of a webhook', () => {
  test('are listed newest first, each once, over the pages', async () => {
    expect(await find({})).toEqual(all)
  })

  test.each(statuses)('are found by their status: %s', async (status) => {
    expect(await find({ status })).toEqual(all.filter((index) => statuses[index % statuses.length] === status))
  })

  test('are found by the type of their event', async () => {
    expect(await find({ eventType: 'contact.created' })).toEqual(all.filter((index) => index % 2 === 1))
  })

  test('are found by the time of their creation: since one, the other excluded', async () => {
    const since = createdAt(5).toISOString()
    const until = createdAt(17).toISOString()
    expect(await find({ since, until })).toEqual(all.filter((index) => index >= 5 && index < 17))
    expect(await find({ until })).toEqual(all.filter((index) => index < 17))
    expect(await find({ since, status: 'failed' })).toEqual(all.filter((index) => index >= 5 && index % 4 === 1))
  })

  test('are found by their creation also when the clock was set back, and their ids are ahead of it', async () => {
    // The id is later than all before it, though it was made of an earlier time.
    newId('delivery', createdAt(count + 50))
    const id = newId('delivery', createdAt(count))
    await engine.db
      .insertInto('deliveries')
      .values({
        id,
        account_id: engine.accountId,
        webhook_id: webhookId,
        event_id: newId('event', createdAt(count)),
        event_type: 'contact.deleted',
        status: 'failed',
        attempt_count: count,
        created_at: createdAt(count),
        completed_at: createdAt(count),
        next_attempt_at: null,
      })
      .execute()
    const since = createdAt(count).toISOString()
    const until = createdAt(count + 1).toISOString()
    expect(await find({ since, until })).toEqual([count])
  })
})
