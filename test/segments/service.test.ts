import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { exampleId } from '../../contract/ids.ts'
import type { SegmentCondition } from '../../contract/segment-conditions.ts'
import { inTransaction } from '../../server/database/connection.ts'
import { segmentConditions } from '../../server/segments/segment-conditions.ts'
import type { SegmentService } from '../../server/segments/service.ts'
import { clearDeletedProperties } from '../../server/subscribers/property-service.ts'
import { patienceMs } from '../support/patience.ts'
import { live } from '../support/scope.ts'
import { refusal } from '../support/worlds/audiences.ts'
import { createSegmentWorld, ofPlan, person, type SegmentWorld } from '../support/worlds/segments.ts'

let world: SegmentWorld
let segments: SegmentService

beforeAll(async () => {
  world = await createSegmentWorld()
  ;({ segments } = world)
})
afterAll(() => world.end())

const everybody: SegmentCondition = { type: 'field', field: 'email', operator: 'exists', value: true }

test('a segment is created, read, changed, listed and deleted', async () => {
  const { db, account } = world
  const audienceId = await world.newAudience()
  const created = await segments.create(db, account, { audienceId, name: 'Payers', conditions: ofPlan('pro') })
  expect(created).toMatchObject({ audienceId, name: 'Payers', conditions: ofPlan('pro') })
  expect(await segments.get(db, account, created.id)).toEqual(created)

  world.moveClock(1_000)
  expect(await segments.update(db, account, created.id, { name: 'Payers' })).toEqual(created)
  const changed = await segments.update(db, account, created.id, { name: 'Free', conditions: ofPlan('free') })
  expect(changed).toMatchObject({ name: 'Free', conditions: ofPlan('free'), createdAt: created.createdAt })
  expect(changed.updatedAt > created.updatedAt).toBe(true)

  const body = { audienceId: await world.newAudience(), name: 'Other', conditions: everybody }
  const other = await segments.create(db, account, body)
  const { data } = await segments.list(db, account, { limit: 2 })
  expect(data.map(({ id }) => id)).toEqual([other.id, created.id])
  expect(await segments.list(db, account, { audienceId, limit: 2 })).toEqual({ data: [changed], nextCursor: null })

  await segments.delete(db, live(account), created.id)
  expect(await refusal(segments.get(db, account, created.id))).toBe('not_found')
  expect(await refusal(segments.delete(db, live(account), created.id))).toBe('not_found')
})

test('a segment is not there for another account, by any call', async () => {
  const { db, account, stranger } = world
  const audienceId = await world.newAudience()
  const { id } = await segments.create(db, account, { audienceId, name: 'Ours', conditions: everybody })
  for (const call of [
    () => segments.get(db, stranger, id),
    () => segments.update(db, stranger, id, { name: 'Theirs' }),
    () => segments.delete(db, live(stranger), id),
    () => segments.count(db, stranger, id),
    () => segments.contacts(db, stranger, id, { limit: 10 }),
  ]) {
    expect(await refusal(call())).toBe('not_found')
  }
  const body = { audienceId, conditions: everybody }
  expect(await refusal(segments.create(db, stranger, { ...body, name: 'Theirs' }))).toBe('audience_not_found')
  expect(await refusal(segments.preview(db, stranger, body))).toBe('audience_not_found')
  expect(await segments.list(db, stranger, { audienceId, limit: 10 })).toEqual({ data: [], nextCursor: null })
  expect(await segments.get(db, account, id)).toMatchObject({ name: 'Ours' })
})

test('a segment is deleted with its audience', async () => {
  const { db, account, audiences } = world
  const audienceId = await world.newAudience()
  const { id } = await segments.create(db, account, { audienceId, name: 'Gone', conditions: everybody })
  await audiences.delete(db, live(account), audienceId)
  expect(await refusal(segments.get(db, account, id))).toBe('not_found')
})

test('a segment is not made of an audience that is being deleted', async () => {
  const { db, account, audiences } = world
  const audienceId = await world.newAudience()
  const { outcome } = await inTransaction(db, async (trx) => {
    await audiences.delete(trx, live(account), audienceId)
    const body = { audienceId, name: 'Late', conditions: everybody }
    // In an object, since it must not be awaited before the commit.
    return { outcome: refusal(segments.create(db, account, body)) }
  })
  expect(await outcome).toBe('audience_not_found')
})

test.each<[SegmentCondition, string, RegExp]>([
  [{ type: 'property', property: 'nope', operator: 'is', value: 'x' }, '.property', /no contact property "nope"/],
  [{ type: 'property', property: 'seats', operator: 'contains', value: 'x' }, '.operator', /one of .* for a number/],
  [{ type: 'property', property: 'seats', operator: 'is', value: '5' }, '.value', /must be a number/],
  [{ type: 'property', property: 'plan', operator: 'is', value: true }, '.value', /must be text/],
  [{ type: 'property', property: 'plan', operator: 'exists', value: 'yes' }, '.value', /must be true or false/],
  [{ type: 'field', field: 'status', operator: 'is', value: 'gone' }, '.value', /"unsubscribed" or "pending"/],
  [
    { type: 'field', field: 'subscriberStatus', operator: 'is', value: 'pending' },
    '.value',
    /"active" or "unsubscribed"/,
  ],
  [{ type: 'field', field: 'createdAt', operator: 'before', value: '2026-02-30T00:00:00Z' }, '.value', /a time/],
  [{ type: 'field', field: 'createdAt', operator: 'in_last_days', value: 0.5 }, '.value', /whole number of days/],
  [{ type: 'field', field: 'createdAt', operator: 'in_last_days', value: 3_651 }, '.value', /from 1 to 3650/],
])('a segment with %j is refused, and told where', async (condition, place, message) => {
  const { db, account } = world
  const audienceId = await world.newAudience()
  const conditions: SegmentCondition = { type: 'not', condition: { type: 'or', conditions: [everybody, condition] } }
  const body = { audienceId, name: 'Faulty', conditions }
  const { id } = await segments.create(db, account, { ...body, conditions: everybody })
  const path = `body.conditions.condition.conditions[1]${place}`
  const details = [{ path, message: expect.stringMatching(message) }]
  for (const call of [
    () => segments.create(db, account, body),
    () => segments.update(db, account, id, { conditions }),
    () => segments.preview(db, account, { audienceId, conditions }),
  ]) {
    await expect(call()).rejects.toMatchObject({ code: 'rule_violation', details })
  }
  expect(await segments.get(db, account, id)).toMatchObject({ conditions: everybody })
})

test('the people of a segment are shown by pages, newest first, and counted', async () => {
  const { db, account } = world
  const audienceId = await world.newAudience()
  const ids = await world.fill(audienceId, [
    ...Array.from({ length: 5 }, () => person({ properties: { plan: 'pro', gone: 1 } })),
    person({ properties: { plan: 'free' } }),
    person(),
  ])
  // On another list.
  await world.fill(await world.newAudience(), [person({ properties: { plan: 'pro' } })])
  const { id } = await segments.create(db, account, { audienceId, name: 'Payers', conditions: ofPlan('pro') })

  const seen: string[] = []
  let cursor: string | undefined
  do {
    const page = await segments.contacts(db, account, id, { limit: 2, cursor })
    expect(page.data.length).toBeLessThanOrEqual(2)
    for (const contact of page.data) expect(contact).toMatchObject({ audienceId, properties: { plan: 'pro' } })
    seen.push(...page.data.map(({ subscriberId }) => subscriberId))
    cursor = page.nextCursor ?? undefined
  } while (cursor !== undefined)
  expect(seen).toEqual(ids.slice(0, 5).toReversed())
  expect(await segments.count(db, account, id)).toEqual({ count: 5, isEstimate: false })

  const conditions: SegmentCondition = { type: 'not', condition: ofPlan('pro') }
  const preview = await segments.preview(db, account, { audienceId, conditions })
  expect(preview).toMatchObject({ count: 2, isEstimate: false })
  expect(preview.contacts.map(({ subscriberId }) => subscriberId)).toEqual(ids.slice(5).toReversed())
})

test('the people of a segment of an audience in which few match are looked for 10,000 at a time', async () => {
  const { db, account } = world
  const audienceId = await world.newAudience()
  const [first] = await world.fill(audienceId, [person({ properties: { plan: 'rare' } })])
  await world.fillMany(audienceId, 10_500)
  const { id } = await segments.create(db, account, { audienceId, name: 'Rare', conditions: ofPlan('rare') })
  const patient = world.segmentsWith({ lookMs: patienceMs })
  const page = await patient.contacts(db, account, id, { limit: 10 })
  expect(page).toEqual({ data: [], nextCursor: expect.any(String) })
  const preview = await patient.preview(db, account, { audienceId, conditions: ofPlan('rare') })
  expect(preview).toMatchObject({ count: 1, contacts: [] })

  // Fewer than are looked at.
  await sql`
      DELETE FROM contacts WHERE audience_id = ${audienceId} AND subscriber_id IN (
        SELECT subscriber_id FROM contacts WHERE audience_id = ${audienceId} ORDER BY subscriber_id DESC LIMIT 600
      )
    `.execute(db)
  const { data, nextCursor } = await segments.contacts(db, account, id, { limit: 10 })
  expect(data.map(({ subscriberId }) => subscriberId)).toEqual([first])
  expect(nextCursor).toBe(null)
})

async function exported(id: string): Promise<string[]> {
  let text = ''
  for await (const piece of await segments.exportCsv(world.db, world.account, id)) text += piece
  return text.split('\r\n')
}

test('an export has those who match, oldest subscribers first, however many contacts lie between', async () => {
  const { db, account } = world
  const audienceId = await world.newAudience()
  const values = { firstName: '=1+1', properties: { plan: 'pro', seats: -5 } }
  await world.fill(audienceId, [
    person({ email: 'first@example.com', ...values }),
    person({ properties: { plan: 'no' } }),
  ])
  await world.fillMany(audienceId, 2_500)
  await world.fill(audienceId, [
    person({ email: 'last@example.com', status: 'unsubscribed', properties: { plan: 'pro' } }),
  ])
  const { id } = await segments.create(db, account, { audienceId, name: 'Payers', conditions: ofPlan('pro') })
  const [head, ...rows] = await exported(id)
  expect(head).toBe('email,first_name,last_name,status,created_at,plan,seats')
  const cells = rows.map((row) => row.split(',').toSpliced(4, 1))
  expect(cells.toSorted()).toEqual(
    [
      [''],
      ['first@example.com', "'=1+1", '', 'active', 'pro', '-5'],
      ['last@example.com', '', '', 'unsubscribed', 'pro', ''],
    ].toSorted(),
  )
  const everyone = await segments.create(db, account, { audienceId, name: 'All', conditions: everybody })
  const lines = await exported(everyone.id)
  expect(new Set(lines).size).toBe(2_503 + 2)
})

test('an export of nobody has a head alone', async () => {
  const audienceId = await world.newAudience()
  await world.fillMany(audienceId, 10)
  const conditions = ofPlan('nobody')
  const { id } = await segments.create(world.db, world.account, { audienceId, name: 'None', conditions })
  expect(await exported(id)).toEqual(['email,first_name,last_name,status,created_at,plan,seats', ''])
})

test('an export is refused for a segment of another account', async () => {
  const audienceId = await world.newAudience()
  const { id } = await segments.create(world.db, world.account, { audienceId, name: 'Ours', conditions: everybody })
  expect(await refusal(segments.exportCsv(world.db, world.stranger, id))).toBe('not_found')
})

test('a segment whose property was deleted matches nobody and says why, until its conditions are changed', async () => {
  const { db, account, properties } = world
  const audienceId = await world.newAudience()
  await properties.create(db, account, { key: 'color', type: 'string' })
  await world.fill(audienceId, [person(), person()])
  const condition: SegmentCondition = { type: 'property', property: 'color', operator: 'is_not', value: 'red' }
  const conditions: SegmentCondition = { type: 'and', conditions: [everybody, condition] }
  const { id } = await segments.create(db, account, { audienceId, name: 'Not red', conditions })
  expect(await segments.count(db, account, id)).toMatchObject({ count: 2 })
  await properties.delete(db, live(account), 'color')
  const details = [{ path: 'conditions.conditions[1].property', message: expect.stringContaining('"color"') }]
  for (const call of [
    () => segments.count(db, account, id),
    () => segments.contacts(db, account, id, { limit: 10 }),
    () => segmentConditions(db, account, { audienceId, ids: [id] }),
  ]) {
    const message = expect.stringContaining('"Not red"')
    await expect(call()).rejects.toMatchObject({ code: 'segment_invalid', message, details })
  }
  expect(await segments.update(db, account, id, { name: 'Still there' })).toMatchObject({ conditions })
  await segments.update(db, account, id, { conditions: everybody })
  expect(await segments.count(db, account, id)).toMatchObject({ count: 2 })
})

test('a segment whose property was deleted is of no use either where the property has another type now', async () => {
  const { db, account, properties } = world
  const audienceId = await world.newAudience()
  await properties.create(db, account, { key: 'size', type: 'string' })
  const condition: SegmentCondition = { type: 'property', property: 'size', operator: 'contains', value: 'x' }
  const { id } = await segments.create(db, account, { audienceId, name: 'Large', conditions: condition })
  await properties.delete(db, live(account), 'size')
  await clearDeletedProperties({ db })
  await properties.create(db, account, { key: 'size', type: 'number' })
  expect(await refusal(segments.count(db, account, id))).toBe('segment_invalid')
})

async function idsOf(audienceId: string, segmentIds: readonly string[]): Promise<string[]> {
  const { db, account } = world
  const condition = await segmentConditions(db, account, { audienceId, ids: segmentIds })
  const { rows } = await sql<{ id: string }>`
      SELECT s.id FROM contacts c JOIN subscribers s ON s.id = c.subscriber_id
      WHERE c.account_id = ${account} AND c.audience_id = ${audienceId} AND ${condition} ORDER BY s.id
    `.execute(db)
  return rows.map(({ id }) => id)
}

test('the conditions for a campaign hold for the people of each segment, each once', async () => {
  const { db, account } = world
  const audienceId = await world.newAudience()
  const plans = ['pro', 'free', 'team']
  const ids = await world.fill(
    audienceId,
    plans.map((plan) => person({ properties: { plan }, firstName: plan === 'team' ? null : 'Ada' })),
  )
  const make = async (conditions: SegmentCondition) =>
    (await segments.create(db, account, { audienceId, name: 'One', conditions })).id
  const pro = await make(ofPlan('pro'))
  const free = await make(ofPlan('free'))
  const named = await make({ type: 'field', field: 'firstName', operator: 'is', value: 'Ada' })
  expect(await idsOf(audienceId, [pro])).toEqual([ids[0]])
  expect(await idsOf(audienceId, [pro, named, free, pro])).toEqual(ids.slice(0, 2))
})

test('the conditions for a campaign are refused for a segment that is not there, or of another audience or account', async () => {
  const { db, account, stranger } = world
  const audienceId = await world.newAudience()
  const { id } = await segments.create(db, account, { audienceId, name: 'Ours', conditions: everybody })
  const unknown = exampleId('segment')
  await expect(segmentConditions(db, account, { audienceId, ids: [id, unknown] })).rejects.toMatchObject({
    code: 'segment_invalid',
    message: expect.stringContaining(unknown),
  })
  expect(await refusal(segmentConditions(db, account, { audienceId: await world.newAudience(), ids: [id] }))).toBe(
    'segment_invalid',
  )
  expect(await refusal(segmentConditions(db, stranger, { audienceId, ids: [id] }))).toBe('segment_invalid')
})
