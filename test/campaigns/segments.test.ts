import { afterAll, afterEach, beforeEach, expect, test } from 'vitest'
import { exampleId } from '../../contract/ids.ts'
import type { SegmentCondition } from '../../contract/segment-conditions.ts'
import { createRenderer } from '../../server/rendering/renderer.ts'
import { DomainError } from '../../server/shared/errors.ts'
import { holdMonotonicClock } from '../support/clock.ts'
import { live } from '../support/scope.ts'
import { type CampaignWorld, createCampaignWorld } from '../support/worlds/campaigns.ts'

const renderer = createRenderer()
afterAll(() => renderer[Symbol.asyncDispose]())

let world: CampaignWorld
let audience: string
beforeEach(async () => {
  world = await createCampaignWorld(renderer)
  audience = await world.addAudience(0)
})
afterEach(() => world[Symbol.asyncDispose]())

const addressedBy = (value: string): SegmentCondition => ({
  type: 'field',
  field: 'email',
  operator: 'contains',
  value,
})

async function segment(conditions: SegmentCondition, audienceId = audience): Promise<string> {
  return (await world.segments.create(world.db, world.account, { audienceId, name: 'Some', conditions })).id
}

const get = (id: string) => world.campaigns.get(world.db, world.live, id)

test('people of overlapping segments get one email each, and nobody else does', async () => {
  await world.addPeople(audience, 3, 'a.example')
  await world.addPeople(audience, 4, 'ab.example')
  await world.addPeople(audience, 5, 'c.example')
  const [gone = ''] = await world.addPeople(audience, 1, 'a.example')
  await world.contacts.update(
    world.db,
    world.live,
    { audienceId: audience, subscriberId: gone },
    { status: 'unsubscribed' },
  )
  const other = await world.addAudience(2, { domain: 'a.example' })
  const segmentIds = [
    await segment(addressedBy('@a')),
    await segment(addressedBy('b.example')),
    await segment(addressedBy('.example')),
  ]
  const id = await world.draft(audience, { segmentIds: [...segmentIds.slice(0, 2), segmentIds[0] ?? ''] })
  expect((await get(id)).segmentIds).toEqual(segmentIds.slice(0, 2))
  await world.start(id)
  await world.run()
  expect((await get(id)).recipients).toBe(7)
  const written = await world.written()
  expect(new Set(written).size).toBe(7)
  expect(written.every((address) => /@ab?\.example$/.test(address))).toBe(true)
  expect(other).not.toBe(audience)
})

test('who is in a segment is decided when the recipients are listed, by the conditions of the first step, after a crash too', async () => {
  holdMonotonicClock()
  await world.addPeople(audience, 10_050, 'a.example')
  const segmentId = await segment(addressedBy('nobody'))
  const id = await world.draft(audience, { segmentIds: [segmentId] })
  await world.start(id)
  await world.segments.update(world.db, world.account, segmentId, { conditions: addressedBy('@a.example') })
  await world.turn()
  expect(await get(id)).toMatchObject({ status: 'scheduled', recipients: 10_000 })
  await world.segments.update(world.db, world.account, segmentId, { conditions: addressedBy('nobody') })
  // As after a crash: what was claimed is due again, and listing goes on behind the last contact.
  await world.time.advance(30_000)
  await world.turn()
  expect(await get(id)).toMatchObject({ status: 'sending', recipients: 10_050 })
  expect(await world.statuses()).toEqual({ waiting: 10_050 })
  const row = await world.db.selectFrom('campaigns').select('listed_segments').executeTakeFirstOrThrow()
  expect(row.listed_segments).toBe(null)
})

test('conditions on time count back from the beginning of the list', async () => {
  holdMonotonicClock()
  await world.addPeople(audience, 10_001, 'a.example')
  const segmentId = await segment({ type: 'field', field: 'createdAt', operator: 'in_last_days', value: 1 })
  const id = await world.draft(audience, { segmentIds: [segmentId] })
  await world.start(id)
  await world.turn()
  await world.time.advance(2 * 86_400_000)
  await world.turn()
  expect(await get(id)).toMatchObject({ status: 'sending', recipients: 10_001 })
})

const refusalOf = async (work: Promise<unknown>) => {
  const error = await work.then(
    () => null,
    (reason: unknown) => reason,
  )
  return error instanceof DomainError ? [error.code, ...error.details.map(({ path }) => path)] : error
}

test('a segment that cannot be used is refused in a draft: one that is not there, of another audience, or of another account', async () => {
  const good = await segment(addressedBy('a'))
  const elsewhere = await segment(addressedBy('a'), await world.addAudience(0))
  const { id: foreignAudience } = await world.audiences.create(world.db, live(world.stranger), { name: 'Theirs' })
  const foreign = await world.segments.create(world.db, world.stranger, {
    audienceId: foreignAudience,
    name: 'Theirs',
    conditions: addressedBy('a'),
  })
  for (const bad of [exampleId('segment'), elsewhere, foreign.id]) {
    expect(await refusalOf(world.draft(audience, { segmentIds: [good, bad] }))).toEqual([
      'segment_invalid',
      'body.segmentIds[1]',
    ])
  }
  const id = await world.draft(audience, { segmentIds: [good] })
  const change = world.campaigns.update(world.db, world.live, id, { audienceId: await world.addAudience(0) })
  expect(await refusalOf(change)).toEqual(['segment_invalid', 'body.segmentIds[0]'])
})

test('a segment that cannot be used keeps a draft from being sent after it was deleted', async () => {
  const segmentId = await segment(addressedBy('a'))
  const id = await world.draft(audience, { segmentIds: [segmentId] })
  await world.segments.delete(world.db, world.live, segmentId)
  expect(await refusalOf(world.start(id))).toEqual(['segment_invalid', 'body.segmentIds[0]'])
  await world.campaigns.update(world.db, world.live, id, { segmentIds: [] })
  await world.start(id)
})

test('a segment that cannot be used cancels a campaign when it is gone before the start, and says so', async () => {
  await world.addPeople(audience, 2, 'a.example')
  const segmentId = await segment(addressedBy('a'))
  const id = await world.draft(audience, { segmentIds: [segmentId] })
  await world.start(id)
  // As a process of an earlier version deletes it: today this is refused.
  await world.db.deleteFrom('segments').where('id', '=', segmentId).execute()
  await world.run()
  expect(await get(id)).toMatchObject({
    status: 'canceled',
    recipients: 0,
    statusReason: `Its recipients could not be listed: There is no segment with the id "${segmentId}" in the audience "${audience}".`,
  })
  expect(await world.events()).toEqual([])
})

test('a segment that cannot be used cancels a campaign when a property that it names is deleted before the start', async () => {
  await world.properties.create(world.db, world.account, { key: 'plan', type: 'string' })
  const segmentId = await segment({ type: 'property', property: 'plan', operator: 'is', value: 'pro' })
  const id = await world.draft(audience, { segmentIds: [segmentId] })
  await world.start(id)
  await world.properties.delete(world.db, live(world.account), 'plan')
  await world.run()
  expect(await get(id)).toMatchObject({ status: 'canceled', statusReason: expect.stringContaining('plan') })
})
