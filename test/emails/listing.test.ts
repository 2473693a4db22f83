import { afterAll, beforeAll, expect, test } from 'vitest'
import type { EmailListQuery } from '../../contract/emails.ts'
import { exampleId } from '../../contract/ids.ts'
import { refusal } from '../support/worlds/audiences.ts'
import { createEmailWorld, type EmailWorld, good, hourMs } from '../support/worlds/emails.ts'

let world: EmailWorld
/** The ids of the emails by their subjects. */
const ids: Record<string, string> = {}

beforeAll(async () => {
  world = await createEmailWorld()
  const { db, live, test: testKey, stranger, emails, time } = world
  const send = async (subject: string, email = {}, sender: { accountId: string; mode: 'test' | 'live' } = live) => {
    const { id } = await emails.send(db, sender, { ...good, ...email, subject })
    ids[subject] = id
    await time.advance(hourMs)
  }
  await send('first', { to: ['Ada@Example.org', 'bob@example.org'], tags: ['welcome', 'first'] })
  await send('tried', { tags: ['welcome'] }, testKey)
  await send('copied', { to: 'bob@example.org', cc: 'ADA@example.org' })
  await send('scheduled', {
    to: 'cy@bücher.example',
    scheduledAt: new Date(time.clock.now().getTime() + 40 * hourMs).toISOString(),
  })
  await send('theirs', { to: 'ada@example.org', tags: ['welcome'] }, { accountId: stranger, mode: 'test' })
  await db
    .updateTable('emails')
    .set({ campaign_id: exampleId('campaign') })
    .where('id', '=', ids.copied ?? '')
    .execute()
})
afterAll(() => world.end())

async function subjectsOf(query: Partial<EmailListQuery>): Promise<string[]> {
  const { data } = await world.emails.list(world.db, world.live, { limit: 20, ...query })
  return data.map(({ subject }) => subject)
}

test.each<[Partial<EmailListQuery>, string[]]>([
  [{}, ['scheduled', 'copied', 'first']],
  [{ status: 'queued' }, ['copied', 'first']],
  [{ status: 'validated' }, []],
  [{ mode: 'test' }, []],
  [{ mode: 'live' }, ['scheduled', 'copied', 'first']],
  [{ tag: 'welcome' }, ['first']],
  [{ tag: 'welcom' }, []],
  [{ recipient: 'ada@EXAMPLE.org' }, ['copied', 'first']],
  [{ recipient: 'Somebody <bob@example.org>' }, ['copied', 'first']],
  [{ recipient: 'cy@XN--BCHER-KVA.example' }, ['scheduled']],
  [{ recipient: 'nobody@example.org' }, []],
  [{ campaign: exampleId('campaign') }, ['copied']],
  [{ since: '2026-03-01T11:30:00Z' }, ['scheduled', 'copied']],
  [{ since: '2026-03-01T11:30:00.001Z' }, ['scheduled']],
  [{ until: '2026-03-01T11:30:00+01:00' }, ['first']],
  [{ until: '2026-03-01T11:30:00.001Z' }, ['copied', 'first']],
  [{ since: '2026-03-01T10:00:00Z', until: '2026-03-01T12:00:00Z' }, ['copied']],
  [{ mode: 'live', tag: 'welcome', recipient: 'ada@example.org', status: 'queued' }, ['first']],
])('a list by %j shows the emails that fit', async (query, subjects) => {
  expect(await subjectsOf(query)).toEqual(subjects)
})

test.each<Partial<EmailListQuery>>([
  {},
  { status: 'validated' },
  { mode: 'test' },
  { tag: 'welcome' },
  { recipient: 'ada@example.org' },
])('a list with a test key, by %j, shows what test keys sent', async (query) => {
  const { data } = await world.emails.list(world.db, world.test, { limit: 20, ...query })
  expect(data.map(({ subject }) => subject)).toEqual(['tried'])
})

test('a list is read page by page, each email once, also with a filter and while some are added', async () => {
  const { db, live, emails } = world
  const seen: string[] = []
  let cursor: string | undefined
  do {
    const page = await emails.list(db, live, { limit: 1, recipient: 'ada@example.org', cursor })
    seen.push(...page.data.map(({ id }) => id))
    cursor = page.nextCursor ?? undefined
    if (seen.length === 1) ids.late = (await emails.send(db, live, { ...good, subject: 'late' })).id
  } while (cursor !== undefined)
  expect(seen).toEqual([ids.copied, ids.first])
  await db
    .deleteFrom('emails')
    .where('id', '=', ids.late ?? '')
    .execute()
})

test.each(['x', '', 'a@b', 'ada@example.org, bob@example.org'])(
  'a list by %j, which is no address, is refused',
  async (recipient) => {
    await expect(subjectsOf({ recipient })).rejects.toMatchObject({
      code: 'validation_error',
      details: [{ path: 'query.recipient' }],
    })
  },
)

test('a list shows each email with all its recipients', async () => {
  const { data } = await world.emails.list(world.db, world.live, { limit: 20 })
  expect(data.map(({ to, cc }) => [to, cc])).toEqual([
    [['cy@bücher.example'], []],
    [['bob@example.org'], ['ADA@example.org']],
    [['Ada@Example.org', 'bob@example.org'], []],
  ])
})

test('one email is found by its own account and mode only', async () => {
  const { db, live, test: testKey, stranger, emails } = world
  expect(await emails.get(db, live, ids.first ?? '')).toMatchObject({ id: ids.first, subject: 'first' })
  expect(await refusal(emails.get(db, { ...live, accountId: stranger }, ids.first ?? ''))).toBe('not_found')
  expect(await refusal(emails.get(db, live, ids.theirs ?? ''))).toBe('not_found')
  expect(await refusal(emails.get(db, testKey, ids.first ?? ''))).toBe('not_found')
  expect(await refusal(emails.get(db, live, ids.tried ?? ''))).toBe('not_found')
  expect(await refusal(emails.get(db, live, exampleId('email')))).toBe('not_found')
})

test('the history is told first to last, with what the servers said', async () => {
  const { db, live, emails } = world
  const id = ids.first ?? ''
  await db
    .insertInto('email_timeline')
    .values({
      email_id: id,
      position: 1,
      at: new Date('2026-03-01T09:00:00Z'),
      type: 'delivered',
      reply: '250 OK',
      host: 'mx.example.org',
      detail: null,
    })
    .execute()
  const { timeline } = await emails.get(db, live, id)
  expect(timeline).toEqual([
    { at: '2026-03-01T09:30:00.000Z', type: 'queued', recipient: null, detail: null, reply: null, host: null },
    {
      at: '2026-03-01T09:00:00.000Z',
      type: 'delivered',
      recipient: 'bob@example.org',
      detail: null,
      reply: '250 OK',
      host: 'mx.example.org',
    },
  ])
})
