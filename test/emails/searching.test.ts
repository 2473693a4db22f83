import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { EmailListQuery } from '../../contract/emails.ts'
import { deleteOldEmails } from '../../server/email-delivery/retention.ts'
import { candidates, emailsLookedThrough, maxKeys } from '../../server/emails/search-queries.ts'
import { newId } from '../../server/shared/ids.ts'
import type { Scope } from '../../server/shared/scope.ts'
import { plannerStates, rowsRead } from '../support/rows-read.ts'
import { createEmailWorld, type EmailWorld, good } from '../support/worlds/emails.ts'

let world: EmailWorld
beforeAll(async () => {
  world = await createEmailWorld()
})
afterAll(() => world.end())

type Given = Partial<Omit<EmailListQuery, 'search'>> & { scope?: Scope }

/** The subjects that a search finds, on all pages. */
async function found(search: string, { scope = world.live, ...query }: Given = {}): Promise<string[]> {
  const seen: string[] = []
  let cursor: string | undefined
  do {
    const page = await world.emails.list(world.db, scope, { limit: 20, ...query, search, cursor })
    seen.push(...page.data.map(({ subject }) => subject))
    cursor = page.nextCursor ?? undefined
  } while (cursor !== undefined)
  return seen
}

describe('a search', () => {
  const ids: Record<string, string> = {}
  let order = ''

  beforeAll(async () => {
    const { db, emails, live, test: testKey, stranger } = world
    const send = async (subject: string, email = {}, sender: Scope = live) => {
      ids[subject] = (await emails.send(db, sender, { ...good, ...email, subject })).id
    }
    await send('Your order #1', { to: ['Ada Lovelace <Ada@Example.org>', 'bob@example.org'] })
    await send('YOUR  order #2', { to: 'adam@example.org', tags: ['order'] })
    await send('100% off_today\\now', { to: 'cy@bücher.example' })
    await send('Zero\u200bwidth', { to: '"a b"@example.org' })
    await send('A try', { to: 'ada@example.org' }, testKey)
    await send('Theirs', { to: 'ada@example.org' }, { accountId: stranger, mode: 'test' })
    order = ids['Your order #1'] ?? ''
  })

  test.each<[string, string[]]>([
    ['ada@example.org', ['Your order #1']],
    ['ADA@EXAMPLE.ORG', ['Your order #1']],
    ['Ada Lovelace <ada@example.org>', ['Your order #1']],
    ['ada', ['YOUR  order #2', 'Your order #1']],
    [' ada@ ', ['Your order #1']],
    ['a\u200bdam@', ['YOUR  order #2']],
    ['bob@example', ['Your order #1']],
    ['cy@bücher.example', ['100% off_today\\now']],
    ['"a b"@', ['Zero\u200bwidth']],
    ['example.org', []],
    ['your order', ['YOUR  order #2', 'Your order #1']],
    ['Your  Order #2', ['YOUR  order #2']],
    ['order', []],
    ['zerowidth', ['Zero\u200bwidth']],
    ['Zero\u2060', ['Zero\u200bwidth']],
    ['100%', ['100% off_today\\now']],
    ['1%', []],
    ['100% off_', ['100% off_today\\now']],
    ['___', []],
    ['%', []],
    ['100% off_today\\n', ['100% off_today\\now']],
    ["'; DROP TABLE emails; --", []],
    ['x'.repeat(1_000), []],
    ['😀'.repeat(1_000), []],
  ])('a search for %j finds %j', async (search, subjects) => {
    expect(await found(search)).toEqual(subjects)
  })

  test('a search for an id, the beginning of one or a Message-ID finds that email', async () => {
    const { messageId } = await world.emails.get(world.db, world.live, order)
    for (const search of [order, order.toUpperCase(), order.slice(0, -1), messageId, messageId.slice(1, -1)]) {
      expect(await found(search)).toContain('Your order #1')
    }
    expect(await found(order)).toEqual(['Your order #1'])
    expect(await found(messageId)).toEqual(['Your order #1'])
    expect(await found('email_0')).toHaveLength(4)
    expect(await found('email_7zzzzzzzzzzzzzzzzzzzzzzzzz')).toEqual([])
  })

  test('a search shows only emails of its account and mode', async () => {
    const { test: testKey, stranger } = world
    expect(await found('ada', { scope: testKey })).toEqual(['A try'])
    expect(await found('a try')).toEqual([])
    expect(await found('ada', { scope: { accountId: stranger, mode: 'test' } })).toEqual(['Theirs'])
    expect(await found(order, { scope: testKey })).toEqual([])
    expect(await found(order, { scope: { accountId: stranger, mode: 'live' } })).toEqual([])
  })

  test('a search keeps to the other filters', async () => {
    const { domainId } = world
    expect(await found('your', { tag: 'order' })).toEqual(['YOUR  order #2'])
    expect(await found('your', { recipient: 'bob@example.org' })).toEqual(['Your order #1'])
    expect(await found('your', { status: 'delivered' })).toEqual([])
    expect(await found('your', { domain: domainId })).toHaveLength(2)
    expect(await found('your', { domain: newId('domain', new Date()) })).toEqual([])
    expect(await found('your', { until: '2026-03-01T09:30:00Z' })).toEqual([])
    expect(await found('your', { since: '2026-03-01T09:30:00Z' })).toHaveLength(2)
    expect(await found('your', { since: '2026-03-01T09:30:00.001Z' })).toEqual([])
  })

  test('a search without a character that can be seen is refused', async () => {
    for (const search of [' ', '\u200b', '\t\u00ad\u2060']) {
      await expect(found(search)).rejects.toMatchObject({
        code: 'rule_violation',
        details: [{ path: 'query.search' }],
      })
    }
  })
})

test('a deleted email leaves nothing that it was searched by, and others stay', async () => {
  const { db, emails, live } = world
  const { id: old } = await emails.send(db, live, { ...good, subject: 'Gone soon' })
  await emails.send(db, live, { ...good, subject: 'Gone later' })
  await db.updateTable('emails').set({ status: 'delivered' }).where('id', '=', old).execute()
  const until = new Date('2100-01-01T00:00:00Z')
  await deleteOldEmails(db, { since: new Date(0), until })
  const left = await db
    .selectFrom('email_subjects')
    .select('subject_key')
    .where('subject_key', 'like', 'gone%')
    .execute()
  expect(left).toEqual([{ subject_key: 'gone later' }])
})

describe('among many emails', () => {
  let account: string
  const scope = () => ({ accountId: account, mode: 'live' as const })

  /** Emails in the order of `rows`, as sending writes them. */
  async function add(rows: readonly { subject: string; to: string }[], accountId = account): Promise<void> {
    const ids = rows.map(() => newId('email', new Date('2026-03-01T09:30:00Z')))
    await sql`
      WITH given AS (
        SELECT * FROM unnest(${ids}::text[], ${rows.map((row) => row.subject)}::text[], ${rows.map((row) => row.to)}::text[])
          AS g (id, subject, recipient)
      ), email AS (
        INSERT INTO emails (id, account_id, mode, status, sender, subject, message_id, created_at, updated_at)
        SELECT id, ${accountId}, 'live', 'queued', 'hello@shop.test', subject, '<x@shop.test>', now(), now() FROM given
      ), subject AS (
        INSERT INTO email_subjects SELECT ${accountId}, 'live', lower(subject), id FROM given
      )
      INSERT INTO email_recipients (email_id, position, account_id, kind, address, address_key, domain, status)
      SELECT id, 0, ${accountId}, 'to', recipient, recipient, 'example.org', 'queued' FROM given
    `.execute(world.db)
  }

  const many = 12_000
  const number = (index: number) => String(index).padStart(6, '0')

  beforeAll(async () => {
    const { db, stranger } = world
    for (const table of ['emails', 'email_recipients', 'email_subjects']) {
      await sql`ALTER TABLE ${sql.table(table)} SET (autovacuum_enabled = off)`.execute(db)
    }
    account = newId('account', new Date())
    await db.insertInto('accounts').values({ id: account, name: 'Many', plan: 'scale' }).execute()
    await add([{ subject: 'Order early', to: 'user-early@example.org' }])
    await add([{ subject: 'Rare', to: 'rare@example.org' }])
    await add(
      Array.from({ length: many }, (_, index) => ({
        subject: index % 2 === 0 ? 'Newsletter' : `Order ${number(index)}`,
        to: `user-${number(index)}@example.org`,
      })),
    )
    await add(
      Array.from({ length: many }, () => ({ subject: 'Rare', to: 'rare@example.org' })),
      stranger,
    )
  })

  describe.each(plannerStates('^email'))('where PostgreSQL %s', (_, statement) => {
    beforeAll(async () => {
      await sql.raw(statement).execute(world.db)
    })

    test.each([
      ['of one email', 'rare', 200],
      ['of one subject of many emails', 'newsletter', 5 * candidates],
      ['of one recipient', `user-${number(7)}@example.org`, 200],
      ['of some recipients', 'user-00001', 5 * maxKeys],
      ['that fits nothing', 'nothing', 200],
      ['of too many recipients', 'user', 4 * emailsLookedThrough],
      ['of too many subjects', 'order', 4 * emailsLookedThrough],
      ['of an id', 'email_0', 5 * candidates],
    ])('a page %s reads few rows', async (_, search, bound) => {
      const read = await rowsRead(world.db, (handle) => world.emails.list(handle, scope(), { limit: 20, search }))
      expect(read).toBeLessThan(bound)
    })

    test.each<Partial<EmailListQuery>>([{ status: 'delivered' }, { domain: newId('domain', new Date()) }])(
      'a page by %j reads few rows where nothing fits',
      async (query) => {
        const read = await rowsRead(world.db, (handle) => world.emails.list(handle, scope(), { limit: 20, ...query }))
        expect(read).toBeLessThan(3 * emailsLookedThrough)
      },
    )
  })

  test.each([
    ['newsletter', many / 2],
    ['order', many / 2 + 1],
    ['user', many + 1],
    [`user-${number(1).slice(0, 3)}`, 1_000],
  ])('the pages of %j together have each email once, newest first', async (search, count) => {
    const ids: string[] = []
    let cursor: string | undefined
    do {
      const page = await world.emails.list(world.db, scope(), { limit: 100, search, cursor })
      ids.push(...page.data.map(({ id }) => id))
      cursor = page.nextCursor ?? undefined
    } while (cursor !== undefined)
    expect(ids).toEqual([...new Set(ids)].toSorted().toReversed())
    expect(ids).toHaveLength(count)
  })
})
