import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { EmailListQuery } from '../../contract/emails.ts'
import { exampleId } from '../../contract/ids.ts'
import type { EmailStatus } from '../../server/database/tables/emails.ts'
import { pairsOf } from '../../server/emails/metadata.ts'
import { emailsLookedThrough } from '../../server/emails/search-queries.ts'
import { newId } from '../../server/shared/ids.ts'
import { plannerStates, rowsRead } from '../support/rows-read.ts'
import { createEmailWorld, type EmailWorld } from '../support/worlds/emails.ts'

/*
 * Lists with filters among many emails. Of each kind of filter there is a value that half of the emails have, one that
 * only the oldest have, and one that many newer emails of the other mode have too. All emails of another account have the
 * rare values.
 */

const many = 10_000
const others = 120
const oldest = 30
/** Those of them that have what newer ones of the other mode have, too. */
const shared = 5
const campaign = exampleId('campaign')
const oddTag = '{"a\\b"}, \'%_'

type Email = {
  id: string
  mode: 'live' | 'test'
  status: EmailStatus
  recipient: string
  tags: string[]
  metadata: Record<string, string>
  campaign: string | null
}

let world: EmailWorld
let account: string
const all: Email[] = []

function emailAt(index: number): Omit<Email, 'id'> {
  const mode = index % 5 === 4 ? 'test' : 'live'
  if (index < oldest) {
    return {
      mode,
      status: 'canceled',
      recipient: index < shared ? 'shared@example.org' : 'rare@example.org',
      tags: index < shared ? [oddTag, oddTag] : ['rare', 'common'],
      metadata: { plan: 'free', customer: index < shared ? 'shared' : 'rare' },
      campaign: null,
    }
  }
  if (mode === 'test') {
    return {
      mode,
      status: 'canceled',
      recipient: 'shared@example.org',
      tags: [oddTag],
      metadata: { customer: 'shared' },
      campaign: null,
    }
  }
  const isEven = index % 2 === 0
  return {
    mode,
    status: isEven ? 'delivered' : 'bounced',
    recipient: index % 3 === 0 ? 'common@example.org' : `user-${index}@example.org`,
    tags: isEven ? ['common'] : [],
    metadata: index % 4 < 2 ? { plan: 'free' } : {},
    campaign: isEven ? null : campaign,
  }
}

async function add(accountId: string, emails: readonly Email[]): Promise<void> {
  await sql`
    WITH given AS (
      SELECT * FROM json_to_recordset(${JSON.stringify(emails)}::json) AS g (id text, mode text, status text,
        recipient text, tags text[], metadata jsonb, campaign text)
    ), email AS (
      INSERT INTO emails (id, account_id, mode, status, sender, subject, message_id, tags, metadata, campaign_id,
        created_at, updated_at)
      SELECT id, ${accountId}, mode, status, 'hello@shop.test', 'Order', '<x@shop.test>', tags, metadata, campaign,
        now(), now() FROM given
    )
    INSERT INTO email_recipients (email_id, position, account_id, kind, address, address_key, domain, status)
    SELECT id, 0, ${accountId}, 'to', recipient, recipient, 'example.org', 'queued' FROM given
  `.execute(world.db)
  const pairs = emails.flatMap(({ id, metadata }) => pairsOf(metadata).map((pair) => ({ id, pair })))
  await sql`
    INSERT INTO email_metadata (account_id, pair, email_id)
    SELECT ${accountId}, pair, id FROM json_to_recordset(${JSON.stringify(pairs)}::json) AS p (id text, pair text)
  `.execute(world.db)
}

const scope = () => ({ accountId: account, mode: 'live' as const })

/** The emails on all pages of a list, in their order. */
async function listed(query: Partial<EmailListQuery>): Promise<string[]> {
  const ids: string[] = []
  let cursor: string | undefined
  do {
    const page = await world.emails.list(world.db, scope(), { limit: 100, ...query, cursor })
    ids.push(...page.data.map(({ id }) => id))
    cursor = page.nextCursor ?? undefined
  } while (cursor !== undefined)
  return ids
}

function fitting(query: Partial<EmailListQuery>): string[] {
  const { status, recipient, tag, metadata = {}, campaign: of, since, until, search } = query
  const fits = (email: Email) =>
    email.mode === 'live' &&
    (status === undefined || email.status === status) &&
    (recipient === undefined || email.recipient === recipient) &&
    (tag === undefined || email.tags.includes(tag)) &&
    Object.entries(metadata).every(([name, value]) => email.metadata[name] === value) &&
    (of === undefined || email.campaign === of) &&
    (search === undefined || email.recipient.startsWith(search)) &&
    (since === undefined || since < '2020') &&
    (until === undefined || until > '2100')
  return all
    .filter(fits)
    .map(({ id }) => id)
    .toReversed()
}

const queries: readonly Partial<EmailListQuery>[] = [
  { tag: 'common' },
  { tag: 'rare' },
  { tag: 'none' },
  { tag: oddTag },
  { recipient: 'common@example.org' },
  { recipient: 'rare@example.org' },
  { recipient: 'none@example.org' },
  { recipient: 'shared@example.org' },
  { metadata: { customer: 'shared' } },
  { metadata: { plan: 'free' } },
  { metadata: { customer: 'rare' } },
  { metadata: { plan: 'free', customer: 'rare' } },
  { metadata: { customer: 'none' } },
  { campaign },
  { campaign: newId('campaign', new Date(0)) },
  { status: 'bounced' },
  { status: 'canceled' },
  { tag: 'rare', metadata: { plan: 'free' } },
  { tag: 'common', status: 'canceled' },
  { tag: 'common', status: 'delivered' },
  { tag: 'common', campaign },
  { tag: 'common', until: '2200-01-01T00:00:00Z' },
  { tag: 'common', until: '2000-01-01T00:00:00Z' },
  { recipient: 'rare@example.org', status: 'delivered' },
  { recipient: 'common@example.org', tag: 'rare' },
  { recipient: 'common@example.org', tag: 'common', status: 'delivered', metadata: { plan: 'free' } },
  { campaign, status: 'bounced', recipient: 'common@example.org' },
  { tag: 'rare', since: '2000-01-01T00:00:00Z' },
  { tag: 'rare', since: '2100-01-01T00:00:00Z' },
  { tag: 'rare', search: 'rare@' },
  { tag: 'common', search: 'rare@' },
  { tag: 'none', search: 'rare@' },
]

beforeAll(async () => {
  world = await createEmailWorld()
  const { db, stranger } = world
  for (const table of ['emails', 'email_recipients', 'email_metadata', 'email_tags']) {
    await sql`ALTER TABLE ${sql.table(table)} SET (autovacuum_enabled = off)`.execute(db)
  }
  account = newId('account', new Date())
  await db.insertInto('accounts').values({ id: account, name: 'Many', plan: 'scale' }).execute()
  const emails = (count: number, indexOf: (number: number) => number) =>
    Array.from({ length: count }, (_, number) => ({ id: newId('email', new Date()), ...emailAt(indexOf(number)) }))
  all.push(...emails(many, (number) => number))
  await add(account, all)
  await add(
    stranger,
    emails(many, (number) => number % oldest),
  )
  // The statistics say of the first account in the order of the indexes that it has next to nothing.
  for (let index = 0; index < others; index++) {
    const id = newId('account', new Date())
    await db.insertInto('accounts').values({ id, name: 'Other', plan: 'scale' }).execute()
    await add(
      id,
      emails(100, (number) => oldest + number),
    )
  }
})
afterAll(() => world.end())

test.each(queries)('the pages by %j have each email that fits once, newest first', async (query) => {
  expect(await listed(query)).toEqual(fitting(query))
})

test.each<Partial<EmailListQuery>>([
  { tag: 'rare', metadata: { plan: 'free' } },
  { tag: 'common', recipient: 'rare@example.org' },
  { metadata: { plan: 'free', customer: 'rare' } },
  { tag: oddTag },
])('the first page by %j has the few emails that fit, behind thousands that fit one filter', async (query) => {
  const { data, nextCursor } = await world.emails.list(world.db, scope(), { limit: 100, ...query })
  expect(data.map(({ id }) => id)).toEqual(fitting(query))
  expect(nextCursor).toBeNull()
})

describe.each(plannerStates('^email'))('where PostgreSQL %s', (_, statement) => {
  beforeAll(async () => {
    await sql.raw(statement).execute(world.db)
  })

  test.each(queries)('a page by %j reads few rows', async (query) => {
    const read = await rowsRead(world.db, (handle) => world.emails.list(handle, scope(), { limit: 50, ...query }))
    const filters = Object.values(query).length + Object.keys(query.metadata ?? {}).length
    // Where newer emails of the other mode have the value, a second look is needed.
    const isOneLook = filters === 1 && query.status !== 'canceled' && query.recipient !== 'shared@example.org'
    expect(read).toBeLessThan(isOneLook ? 1_000 : 3 * filters * emailsLookedThrough)
  })
})

test('a page by one filter has the emails behind hundreds of the other mode', async () => {
  const ids = fitting({ recipient: 'shared@example.org' })
  expect(ids.length).toBeGreaterThan(0)
  for (const query of [{ recipient: 'shared@example.org' }, { metadata: { customer: 'shared' } }]) {
    const { data } = await world.emails.list(world.db, scope(), { limit: 1, ...query })
    expect(data.map(({ id }) => id)).toEqual(ids.slice(0, 1))
  }
})

test('a search without a character that can be seen is refused for the other mode, too', async () => {
  const list = world.emails.list(world.db, scope(), { limit: 1, mode: 'test', search: '\u200b' })
  await expect(list).rejects.toMatchObject({ code: 'rule_violation', details: [{ path: 'query.search' }] })
})

test('a tag of an email that is deleted leaves nothing', async () => {
  const { db, emails, live } = world
  const { id } = await emails.send(db, live, {
    from: 'hello@shop.test',
    to: 'ada@example.org',
    subject: 'Gone',
    text: 'x',
    tags: ['a', 'b'],
  })
  const tagsOf = () => db.selectFrom('email_tags').select(['mode', 'tag']).where('email_id', '=', id).execute()
  expect(await tagsOf()).toEqual([
    { mode: 'live', tag: 'a' },
    { mode: 'live', tag: 'b' },
  ])
  await db.deleteFrom('emails').where('id', '=', id).execute()
  expect(await tagsOf()).toEqual([])
})
