import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { exampleId } from '../../contract/ids.ts'
import type { Trx } from '../../server/database/connection.ts'
import { lockDue, markSending } from '../../server/email-delivery/sending-queries.ts'
import type { Scope } from '../../server/shared/scope.ts'
import { live } from '../support/scope.ts'
import { refusal } from '../support/worlds/audiences.ts'
import { createEmailWorld, type EmailWorld, good, hourMs } from '../support/worlds/emails.ts'

let world: EmailWorld

beforeAll(async () => {
  world = await createEmailWorld()
})
afterAll(() => world.end())
beforeEach(async () => {
  await world.due()
})

function inHours(hours: number): Date {
  return new Date(world.time.clock.now().getTime() + hours * hourMs)
}

async function schedule(to: string | string[] = 'ada@example.org'): Promise<string> {
  const { db, live, emails } = world
  const { id } = await emails.send(db, live, { ...good, to, scheduledAt: inHours(1).toISOString() })
  return id
}

/** Does the first step of the worker with a claimed email: begins to send to its due recipients. Returns how many. */
async function begin(trx: Trx, id: string): Promise<number> {
  const [email] = await lockDue(trx, [id])
  const due = email?.recipients.filter((recipient) => recipient.due) ?? []
  const begun = due.map(({ position }) => ({ emailId: id, position }))
  await markSending(trx, { begun, resent: [], at: world.time.clock.now() })
  return due.length
}

test('rescheduling moves an email with its recipients and its job, and its history says so', async () => {
  const { db, account, emails, time } = world
  const id = await schedule(['ada@example.org', 'bob@example.org'])
  const to = inHours(3)
  await time.advance(60_000)
  const moved = await emails.reschedule(db, live(account), id, to)
  expect(moved).toMatchObject({
    id,
    status: 'scheduled',
    scheduledAt: to.toISOString(),
    updatedAt: time.clock.now().toISOString(),
    to: ['ada@example.org', 'bob@example.org'],
  })
  const { recipients, timeline } = await emails.get(db, live(account), id)
  expect(recipients.map(({ nextAttemptAt }) => nextAttemptAt)).toEqual([to.toISOString(), to.toISOString()])
  expect(timeline.map(({ type, detail }) => [type, detail])).toEqual([
    ['scheduled', expect.any(String)],
    ['rescheduled', `For ${to.toISOString()}.`],
  ])
  await time.advance(2 * hourMs)
  expect(await world.due()).toEqual([])
  await time.advance(hourMs)
  expect(await world.due()).toEqual([id])
})

test('rescheduling can bring an email forward', async () => {
  const { db, account, emails, time } = world
  const id = await schedule()
  await emails.reschedule(db, live(account), id, inHours(0.5))
  await time.advance(hourMs / 2)
  expect(await world.due()).toEqual([id])
})

test.each([
  [0, 'must be in the future'],
  [30 * 24 + 1, 'must be at most 30 days ahead'],
])('rescheduling by %i hours from now is refused', async (hours, message) => {
  const { db, account, emails } = world
  const id = await schedule()
  await expect(emails.reschedule(db, live(account), id, inHours(hours))).rejects.toMatchObject({
    code: 'rule_violation',
    details: [{ path: 'body.scheduledAt', message }],
  })
})

test('rescheduling counts for a worker that had claimed the email before: it finds nothing due', async () => {
  const { db, account, emails, queue, time } = world
  const id = await schedule()
  await time.advance(hourMs)
  const claimed = (await queue.claim('due', 'single', 10)).filter(({ emailId }) => emailId === id)
  expect(claimed).toHaveLength(1)
  await emails.reschedule(db, live(account), id, inHours(2))
  expect(await db.transaction().execute((trx) => begin(trx, id))).toBe(0)
  // Nor does its claim take the new job away.
  await db.transaction().execute((trx) =>
    queue.finish(
      trx,
      claimed.map((one) => ({ claimed: one, nextAt: null })),
    ),
  )
  expect(await queue.missing(db, [id])).toEqual([])
  await time.advance(2 * hourMs)
  expect(await world.due()).toEqual([id])
})

test('canceling ends an email with its recipients and its job', async () => {
  const { db, account, emails, queue, time } = world
  const id = await schedule()
  const at = time.clock.now().toISOString()
  expect(await emails.cancel(db, live(account), id)).toMatchObject({ id, status: 'canceled', completedAt: at })
  const { recipients, timeline } = await emails.get(db, live(account), id)
  expect(recipients).toMatchObject([{ status: 'canceled', nextAttemptAt: null }])
  expect(timeline.map(({ type }) => type)).toEqual(['scheduled', 'canceled'])
  expect(await queue.missing(db, [id])).toEqual([id])
})

test('canceling leaves what had ended before as it was', async () => {
  const { db, account, emails, suppressions } = world
  await suppressions.create(db, account, { address: 'blocked@example.org' })
  const id = await schedule(['blocked@example.org', 'ada@example.org'])
  await emails.cancel(db, live(account), id)
  const { recipients } = await emails.get(db, live(account), id)
  expect(recipients.map(({ status }) => status)).toEqual(['suppressed', 'canceled'])
})

const both = [
  ['reschedule', (id: string, key: Scope = world.live) => world.emails.reschedule(world.db, key, id, inHours(2))],
  ['cancel', (id: string, key: Scope = world.live) => world.emails.cancel(world.db, key, id)],
] as const

test.each(both)('neither rescheduling nor canceling is possible once an email was canceled: %s', async (_, change) => {
  const id = await schedule()
  await world.emails.cancel(world.db, live(world.account), id)
  expect(await refusal(change(id))).toBe('email_not_scheduled')
})

test.each(both)(
  'neither rescheduling nor canceling is possible for what is sent at once, or not at all: %s',
  async (_, change) => {
    const { db, live, test: testKey, emails } = world
    const scheduledAt = inHours(1).toISOString()
    const [queued, validated] = [
      await emails.send(db, live, good),
      await emails.send(db, testKey, { ...good, scheduledAt }),
    ]
    expect([validated.status, await refusal(change(queued.id)), await refusal(change(validated.id, testKey))]).toEqual([
      'validated',
      'email_not_scheduled',
      'email_not_scheduled',
    ])
  },
)

test.each(both)(
  'neither rescheduling nor canceling is possible for what is not there, or of another account: %s',
  async (name, change) => {
    expect(await refusal(change(exampleId('email')))).toBe('not_found')
    const { db, stranger, emails } = world
    const id = await schedule()
    const theirs =
      name === 'cancel' ? emails.cancel(db, live(stranger), id) : emails.reschedule(db, live(stranger), id, inHours(2))
    expect(await refusal(theirs)).toBe('not_found')
    expect((await emails.get(db, live(world.account), id)).status).toBe('scheduled')
  },
)

test.each(both)('neither rescheduling nor canceling is possible once an email was begun: %s', async (_, change) => {
  const { db, time } = world
  const id = await schedule()
  await time.advance(hourMs)
  expect(await db.transaction().execute((trx) => begin(trx, id))).toBe(1)
  expect(await refusal(change(id))).toBe('email_not_scheduled')
})

describe('of canceling and sending at one moment, one happens', () => {
  test('canceling, where it is first: the worker finds nothing due', async () => {
    const { db, account, emails, time } = world
    const id = await schedule()
    await time.advance(hourMs)
    let worker: Promise<number> | undefined
    await db.transaction().execute(async (trx) => {
      await emails.cancel(trx, live(account), id)
      // Waits for the row that is locked here.
      worker = db.transaction().execute((other) => begin(other, id))
    })
    expect(await worker).toBe(0)
    expect((await emails.get(db, live(account), id)).status).toBe('canceled')
  })

  test('sending, where it is first: canceling is refused', async () => {
    const { db, account, emails, time } = world
    const id = await schedule()
    await time.advance(hourMs)
    let canceling: Promise<unknown> | undefined
    await db.transaction().execute(async (trx) => {
      expect(await begin(trx, id)).toBe(1)
      canceling = refusal(emails.cancel(db, live(account), id))
    })
    expect(await canceling).toBe('email_not_scheduled')
    expect((await emails.get(db, live(account), id)).status).toBe('sending')
  })

  test('one of canceling and sending happens, whichever comes first, never both', async () => {
    const { db, account, emails, time } = world
    for (let round = 0; round < 20; round++) {
      const id = await schedule()
      await time.advance(hourMs)
      const [begun, canceled] = await Promise.all([
        db.transaction().execute((trx) => begin(trx, id)),
        refusal(emails.cancel(db, live(account), id)),
      ])
      const { status } = await emails.get(db, live(account), id)
      expect([begun, canceled, status]).toEqual(
        begun === 1 ? [1, 'email_not_scheduled', 'sending'] : [0, 'not refused', 'canceled'],
      )
    }
  })
})
