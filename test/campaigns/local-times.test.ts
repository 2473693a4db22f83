import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createEngine } from '../../server/campaigns/engine.ts'
import { claimCampaigns } from '../../server/campaigns/engine-queries.ts'
import { startTimeOf } from '../../server/campaigns/start-time.ts'
import { createRenderer } from '../../server/rendering/renderer.ts'
import { live } from '../support/scope.ts'
import { type CampaignWorld, createCampaignWorld } from '../support/worlds/campaigns.ts'

const renderer = createRenderer()
afterAll(() => renderer[Symbol.asyncDispose]())

let world: CampaignWorld
let audience: string
beforeEach(async () => {
  world = await createCampaignWorld(renderer)
  audience = await world.addAudience(0)
  await world.properties.create(world.db, world.account, { key: 'timezone', type: 'string' })
})
afterEach(() => world[Symbol.asyncDispose]())

/** In Berlin and Troll, clocks leave this time out. */
const localTime = '2026-03-29T02:30:00'

/** When it comes where. */
const comesAt = {
  'Pacific/Kiritimati': '2026-03-28T12:30:00.000Z',
  'Pacific/Chatham': '2026-03-28T12:45:00.000Z',
  'Asia/Kathmandu': '2026-03-28T20:45:00.000Z',
  'Europe/Berlin': '2026-03-29T01:00:00.000Z',
  'Antarctica/Troll': '2026-03-29T01:00:00.000Z',
  UTC: '2026-03-29T02:30:00.000Z',
  'America/New_York': '2026-03-29T06:30:00.000Z',
  'Etc/GMT+12': '2026-03-29T14:30:00.000Z',
} as const

/** Adds a person with a value of the property. Undefined: without. */
async function add(name: string, timezone?: string): Promise<void> {
  const properties = timezone === undefined ? {} : { timezone }
  await world.contacts.add(world.db, world.live, audience, { email: `${name}@example.org`, properties })
}

async function schedule(given: { localTime: string; fallbackTimezone?: string | undefined }): Promise<string> {
  const id = await world.draft(audience)
  await world.campaigns.send(world.db, world.live, id, { fallbackTimezone: undefined, ...given })
  return id
}

const get = (id: string) => world.campaigns.get(world.db, world.live, id)

/** Moves time from one due moment to the next until the campaign has ended. Returns when each address was written to. */
async function writtenAt(id: string): Promise<Record<string, string>> {
  const at: Record<string, string> = {}
  while ((await get(id)).endedAt === null) {
    await world.run()
    for (const address of await world.written()) at[address] ??= world.time.clock.now().toISOString()
    await world.handOver()
    const { due_at: dueAt } = await world.db.selectFrom('campaigns').select('due_at').executeTakeFirstOrThrow()
    if (dueAt !== null) await world.time.set(dueAt)
  }
  return at
}

describe('a campaign at a local time', () => {
  test('a campaign at a local time is written to each person when the time comes in their zone, not a moment earlier', async () => {
    const expected: Record<string, string> = {}
    for (const [index, [zone, at]] of Object.entries(comesAt).entries()) {
      await add(`person-${index}`, zone)
      expected[`person-${index}@example.org`] = at
    }
    const id = await schedule({ localTime })
    expect(await get(id)).toMatchObject({
      status: 'scheduled',
      scheduledAt: comesAt['Pacific/Kiritimati'],
      localTime,
      fallbackTimezone: 'UTC',
      waitingFor: null,
    })
    expect(await writtenAt(id)).toEqual(expected)
    expect(await get(id)).toMatchObject({ status: 'completed', recipients: Object.keys(expected).length })
    expect(await world.events()).toHaveLength(2)
    const { data } = await world.campaigns.recipients(world.db, world.live, id, { limit: 100 })
    expect(Object.fromEntries(data.map(({ email, sendAt }) => [email, sendAt]))).toEqual(expected)
  })

  test.each([
    [undefined, undefined, 'UTC'],
    [undefined, 'America/New_York', 'America/New_York'],
    ['Nowhere', undefined, 'UTC'],
    ['Asia/Kathmandu', undefined, 'Asia/Kathmandu'],
    ['Asia/Kathmandu', 'America/New_York', 'America/New_York'],
  ] as const)('people without a known zone have that of the property (%s) or the request (%s): %s', async (...row) => {
    const [fallback, fallbackTimezone, zone] = row
    const { db, account, properties } = world
    if (fallback !== undefined) await properties.update(db, account, 'timezone', { fallback })
    const unknown = [
      undefined,
      '',
      '+02:00',
      'Mars/Base',
      `${'Europe/'.repeat(60)}Berlin`,
      "'); DROP TABLE campaigns; --",
    ]
    for (const [index, value] of unknown.entries()) await add(`person-${index}`, value)
    await add('known', 'pacific/chatham')
    const id = await schedule({ localTime, fallbackTimezone })
    const expected = Object.fromEntries(unknown.map((_, index) => [`person-${index}@example.org`, comesAt[zone]]))
    expect(await writtenAt(id)).toEqual({ 'known@example.org': comesAt['Pacific/Chatham'], ...expected })
  })

  test('a campaign at a local time says what it waits for, and is not looked at before, until it is paused, resumed or canceled', async () => {
    await add('chatham', 'Pacific/Chatham')
    await add('berlin', 'Europe/Berlin')
    const id = await schedule({ localTime })
    await world.time.set(new Date(comesAt['Pacific/Chatham']))
    await world.run()
    await world.handOver()
    await world.time.advance(2_000)
    await world.run()
    const waitingFor = { reason: 'local_time', until: comesAt['Europe/Berlin'] }
    expect(await get(id)).toMatchObject({ status: 'sending', waitingFor })
    const [listed] = (await world.campaigns.list(world.db, world.live, { limit: 1 })).data
    expect(listed?.waitingFor).toEqual(waitingFor)
    await world.time.set(new Date(Date.parse(comesAt['Europe/Berlin']) - 1))
    expect(await world.turn()).toBe(0)
    await world.campaigns.pause(world.db, world.live, id)
    expect(await get(id)).toMatchObject({ status: 'paused', waitingFor: null })
    await world.time.advance(60_000)
    expect(await world.turn()).toBe(0)
    await world.campaigns.resume(world.db, world.live, id)
    await world.run()
    expect(await world.written()).toEqual(['berlin@example.org', 'chatham@example.org'])
    await world.campaigns.cancel(world.db, world.live, id)
    expect(await get(id)).toMatchObject({ status: 'canceled', waitingFor: null })
    expect(await world.campaigns.statistics(world.db, world.live, id)).toMatchObject({ handedOver: 1, canceled: 1 })
  })

  test('a campaign at a local time that a pause took back reaches people of all times once', async () => {
    for (let n = 0; n < 3; n++) {
      await add(`chatham-${n}`, 'Pacific/Chatham')
      await add(`berlin-${n}`, 'Europe/Berlin')
    }
    const id = await schedule({ localTime })
    await world.time.set(new Date(comesAt['Europe/Berlin']))
    await world.run()
    expect(await world.statuses()).toEqual({ queued: 6 })
    await world.campaigns.pause(world.db, world.live, id)
    expect(await world.statuses()).toEqual({ waiting: 6 })
    await world.campaigns.resume(world.db, world.live, id)
    await writtenAt(id)
    expect(await world.statuses()).toEqual({ handed_over: 6 })
    expect(await world.written()).toHaveLength(6)
  })

  test('a campaign at a local time is sent at once to people whose time has passed, and holds over two workers', async () => {
    await world.addPeople(audience, 450)
    await add('kiritimati', 'Pacific/Kiritimati')
    await world.time.set(new Date('2026-03-29T02:00:00.000Z'))
    const id = await schedule({ localTime })
    const workers = [createEngine(world.means), createEngine(world.means)]
    const round = async () => {
      const claimed = await claimCampaigns(world.db, 10, 1_000)
      await Promise.all(claimed.flatMap((campaign) => workers.map((take) => take(campaign))))
      await world.handOver()
      await world.time.advance(1_000)
    }
    for (let n = 0; n < 5; n++) await round()
    expect(await world.written()).toEqual(['kiritimati@example.org'])
    await world.time.set(new Date(comesAt.UTC))
    for (let n = 0; n < 12; n++) await round()
    expect(await get(id)).toMatchObject({ status: 'completed' })
    expect(new Set(await world.written()).size).toBe(451)
    expect(await world.written()).toHaveLength(451)
  })

  test('a campaign at a local time of a property that was deleted is that of the fallback zone for all', async () => {
    await add('chatham', 'Pacific/Chatham')
    const id = await schedule({ localTime })
    // Within a transaction, the values stay for now, as those of a large account do.
    await world.db.transaction().execute((trx) => world.properties.delete(trx, live(world.account), 'timezone'))
    expect(await writtenAt(id)).toEqual({ 'chatham@example.org': comesAt.UTC })
  })
})

const refusal = (path: string, message: RegExp) => ({
  code: 'rule_violation',
  details: [{ path, message: expect.stringMatching(message) }],
})

test.each([
  ['with a day that does not exist', { localTime: '2026-02-30T09:00:00' }, 'body.localTime', /day that exists/],
  ['when it has passed', { localTime: '2026-03-01T09:30' }, 'body.localTime', /in the future, in the time zone UTC/],
  ['when it is too far ahead', { localTime: '2027-03-02T09:30' }, 'body.localTime', /365 days ahead/],
  [
    'with an unknown zone',
    { localTime, fallbackTimezone: 'Mars/Base' },
    'body.fallbackTimezone',
    /IANA time zone such as/,
  ],
])('a request for a local time is refused: %s', async (_, given, path, message) => {
  await expect(schedule(given)).rejects.toMatchObject(refusal(path, message))
})

test('a request for a local time is refused where the zones of people are not declared', async () => {
  await world.properties.delete(world.db, live(world.account), 'timezone')
  const message = /needs the contact property "timezone" with the type "string"/
  await expect(schedule({ localTime })).rejects.toMatchObject(refusal('body.localTime', message))
  await world.properties.create(world.db, world.account, { key: 'timezone', type: 'number' })
  await expect(schedule({ localTime })).rejects.toMatchObject(refusal('body.localTime', message))
})

test('a request for a local time is refused beside a time for all, and a zone without it', () => {
  const scheduledAt = '2026-03-29T02:30:00Z'
  expect(() => startTimeOf({ scheduledAt, localTime })).toThrow(/beside scheduledAt/)
  expect(() => startTimeOf({ fallbackTimezone: 'UTC' })).toThrow(/without localTime/)
})
