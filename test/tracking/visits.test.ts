import { afterAll, beforeAll, expect, test } from 'vitest'
import { recordFacts } from '../../server/email-delivery/record-facts.ts'
import { createOutbox } from '../../server/outbox/append.ts'
import { minReadingMs } from '../../server/tracking/automated-visits.ts'
import type { Visit } from '../../server/tracking/tracking.ts'
import { maxWaiting, startVisitRecorder, type VisitRecorderOptions } from '../../server/tracking/visits.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { seedAccount, seedEmail } from '../support/emails.ts'

const at = new Date('2026-03-01T09:30:00.000Z')
const visitor = { userAgent: 'Firefox', ipAddress: '192.0.2.1', automated: false }
const link = 'https://shop.example/'

let database: TestDatabase
let emailId: string

beforeAll(async () => {
  database = await createTestDatabase()
  const accountId = await seedAccount(database.db, at)
  emailId = await seedEmail(database.db, { accountId, at, to: ['ann@example.org', 'bob@example.org'] })
})
afterAll(() => database?.drop())

const opened = (position: number, changes: Partial<typeof visitor> = {}): Visit => ({
  kind: 'opened',
  emailId,
  position,
  at,
  ...visitor,
  ...changes,
})
const clicked = (position: number, after: number): Visit => ({
  ...opened(position),
  kind: 'clicked',
  link,
  at: new Date(at.getTime() + after),
})

/** A recorder, what it wrote, and what it told. It writes when it is stopped, or when a test waits for a batch. */
function start(options: Partial<VisitRecorderOptions> = {}) {
  const batches: (readonly Visit[])[] = []
  const dropped: number[] = []
  const errors: unknown[] = []
  const recorder = startVisitRecorder({
    db: database.db,
    record: async (visits) => void batches.push(visits),
    onError: (error) => errors.push(error),
    onDropped: (count) => dropped.push(count),
    intervalMs: 3_600_000,
    ...options,
  })
  return { recorder, batches, dropped, errors }
}

test('visits are written by themselves, in batches, and tell of themselves once', async () => {
  const written = Promise.withResolvers<readonly Visit[]>()
  const { recorder } = start({ intervalMs: 5, record: async (visits) => written.resolve(visits) })
  for (let count = 0; count < 100; count++) {
    recorder.add(opened(0))
    recorder.add(clicked(1, minReadingMs))
  }

  expect(await written.promise).toEqual([opened(0), clicked(1, minReadingMs)])
  await recorder.stop()
})

test('visits are told apart by recipient, by link, and by whether a machine made them', async () => {
  const { recorder, batches } = start()
  const other = { ...clicked(0, minReadingMs), link: 'https://other.example/' } as const
  const visits = [opened(0), opened(1), opened(0, { automated: true }), clicked(0, minReadingMs), other]
  for (const visit of [...visits, ...visits]) recorder.add(visit)
  await recorder.stop()

  expect(batches.flat()).toEqual(visits)
})

test('visits are at most so many at a time, and what waits is written at the end', async () => {
  const { recorder, batches } = start()
  for (let count = 0; count < 1_200; count++) recorder.add(opened(count))
  await recorder.stop()

  expect(batches.map((batch) => batch.length)).toEqual([500, 500, 200])
  expect(batches.flat().map(({ position }) => position)).toEqual(Array.from({ length: 1_200 }, (_, index) => index))
})

test('visits beyond what may wait are dropped, and counted', async () => {
  const { recorder, batches, dropped } = start()
  for (let count = 0; count < maxWaiting + 7; count++) recorder.add(opened(count))
  // This one waits already.
  recorder.add(opened(0))
  await recorder.stop()

  expect(batches.flat()).toHaveLength(maxWaiting)
  expect(dropped).toEqual([7])
})

test('visits that cannot be written wait, and are written later', async () => {
  const failed = Promise.withResolvers<void>()
  const written = Promise.withResolvers<readonly Visit[]>()
  let working = false
  const { recorder, errors } = start({
    intervalMs: 5,
    async record(visits) {
      if (working) return written.resolve(visits)
      failed.resolve()
      throw new Error('the database is away')
    },
  })
  recorder.add(opened(0))
  await failed.promise
  working = true
  recorder.add(opened(1))

  expect(await written.promise).toEqual([opened(0), opened(1)])
  await recorder.stop()
  expect(errors).toEqual([new Error('the database is away')])
})

test('visits that cannot be written at the end are dropped, and counted', async () => {
  const record = () => Promise.reject(new Error('the database is away'))
  const { recorder, errors, dropped } = start({ record })
  recorder.add(opened(0))
  recorder.add(opened(1))
  await recorder.stop()

  expect(errors).toEqual([new Error('the database is away')])
  expect(dropped).toEqual([2])
})

test('a link that is followed sooner than a person can read makes an automated click, an open does not', async () => {
  await database.db
    .updateTable('email_recipients')
    .set({ accepted_at: at })
    .where('email_id', '=', emailId)
    .where('position', '=', 0)
    .execute()
  const { recorder, batches } = start()
  recorder.add(clicked(0, minReadingMs - 1))
  recorder.add(opened(0))
  recorder.add(clicked(1, 0))
  await recorder.stop()
  const later = start()
  later.recorder.add(clicked(0, minReadingMs))
  await later.recorder.stop()

  expect(batches.flat().map(({ automated }) => automated)).toEqual([true, false, false])
  expect(later.batches.flat().map(({ automated }) => automated)).toEqual([false])
})

test('opens and clicks become events, and mark their recipients', async () => {
  const { db } = database
  const outbox = createOutbox({ clock: { now: () => at }, wake: () => undefined })
  const { recorder } = start({ record: (visits) => recordFacts(db, { outbox }, visits) })
  recorder.add(opened(1))
  recorder.add(clicked(1, minReadingMs))
  await recorder.stop()

  const events = await db.selectFrom('events').select(['type', 'body']).orderBy('id').execute()
  const { opened_at, clicked_at } = await db
    .selectFrom('email_recipients')
    .select(['opened_at', 'clicked_at'])
    .where('email_id', '=', emailId)
    .where('position', '=', 1)
    .executeTakeFirstOrThrow()
  expect(events.map(({ type }) => type)).toEqual(['email.opened', 'email.clicked'])
  expect(JSON.parse(events[1]?.body ?? '').data).toMatchObject({ emailId, to: 'bob@example.org', link, ...visitor })
  expect(opened_at).toEqual(at)
  expect(clicked_at).toEqual(new Date(at.getTime() + minReadingMs))
})
