import { globSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'

/*
 * Each table belongs to one room, and other rooms ask it. Where a statement has to touch tables of several rooms, as one
 * moment or for one round trip, the room that sends it is named here with the reason. `server/database` has the types and
 * the migrations of all tables; a trigger there counts in `event_counters`.
 */

type Owner = { room: string; also?: Record<string, string> }

const owners: Record<string, Owner> = {
  accounts: {
    room: 'accounts',
    also: {
      'api-keys': 'the plan of an account is read with the key of a request',
      users: 'name and plan of an account are read with the session of a request',
      'portal-sessions': 'the plan of an account is read with the portal session of a request',
      suppressions: 'an address is suppressed only while its account exists',
      statistics: 'figures of a deleted account are not rolled up',
      'stored-messages': 'a message of another program belongs to the first account',
      campaigns: 'the name of the account, for content',
    },
  },
  api_keys: { room: 'api-keys', also: { 'portal-sessions': 'a portal session may do what its maker may' } },
  processes: { room: 'processes' },
  users: { room: 'users' },
  recovery_codes: { room: 'users' },
  memberships: { room: 'users', also: { 'portal-sessions': 'a portal session may do what its maker may' } },
  portal_sessions: { room: 'portal-sessions' },
  user_sessions: { room: 'users' },
  user_links: { room: 'users' },
  account_emails: { room: 'users' },
  sign_in_failures: { room: 'users' },
  passkeys: { room: 'users' },
  used_challenges: { room: 'users' },
  user_identities: { room: 'users' },
  audit_log: { room: 'audit-log' },
  templates: { room: 'templates' },
  template_versions: { room: 'templates' },
  request_logs: { room: 'request-logs' },
  request_log_days: { room: 'request-logs' },
  webhooks: {
    room: 'webhooks',
    also: {
      'webhook-delivery': 'a settlement disables webhooks that fail, and an attempt reads its target',
      'fan-out': 'the webhooks of an event are read behind its commit',
      queue: 'jobs of an older version get their flow from the webhook',
    },
  },
  webhook_urls: { room: 'deliveries' },
  delivery_flows: {
    room: 'queue',
    also: { 'webhook-delivery': 'loaded with a delivery', 'fan-out': 'read with a webhook' },
  },
  flow_states: { room: 'webhook-delivery', also: { deliveries: 'why a delivery waits' } },
  webhook_outcomes: { room: 'webhook-delivery' },
  webhook_recoveries: { room: 'webhook-delivery' },
  events: {
    room: 'outbox',
    also: {
      events: 'lists and polling',
      'fan-out': 'events with their outbox rows',
      deliveries: 'a sample is written with its delivery, and read with it',
      'webhook-delivery': 'loaded with a delivery, and looked for by a recovery',
      background: 'retention deletes events without deliveries, in one statement',
    },
  },
  event_counters: { room: 'outbox', also: { 'webhook-delivery': 'where a recovery ends' } },
  event_positions: {
    room: 'outbox',
    also: { events: 'polling', 'webhook-delivery': 'a recovery reads in their order', background: 'retention' },
  },
  outbox_rows: {
    room: 'outbox',
    also: {
      events: 'polling gives positions to what still waits',
      'fan-out': 'takes events out of the outbox',
      'webhook-delivery': 'a settlement ends the lease of an event',
      background: 'retention leaves events alone that wait',
    },
  },
  deliveries: {
    room: 'webhook-delivery',
    also: {
      deliveries: 'lists, samples, sending again',
      'fan-out': 'makes them',
      queue: 'jobs of an older version',
      background: 'retention',
    },
  },
  attempts: { room: 'webhook-delivery', also: { deliveries: 'lists, samples', background: 'retention' } },
  subscribers: {
    room: 'subscribers',
    also: {
      audiences: 'contacts with their people',
      'email-delivery': 'who may be sent to is decided with locks',
      campaigns: 'recipients are listed and read in sets',
      topics: 'choices are found by address',
    },
  },
  audiences: {
    room: 'audiences',
    also: { subscribers: 'whether people confirm their address, before a test key gives one another' },
  },
  contacts: {
    room: 'audiences',
    also: {
      subscribers: 'unsubscribing and deleting a person changes their contacts',
      'email-delivery': 'who may be sent to is decided with locks',
      campaigns: 'recipients are listed and read in sets',
    },
  },
  contact_properties: { room: 'subscribers' },
  account_brands: { room: 'accounts' },
  topics: { room: 'topics', also: { 'email-delivery': 'who may be sent to is decided with locks' } },
  topic_choices: { room: 'topics', also: { 'email-delivery': 'who may be sent to is decided with locks' } },
  segments: { room: 'segments' },
  imports: { room: 'imports' },
  import_chunks: { room: 'imports' },
  import_zip_chunks: { room: 'imports' },
  import_failures: { room: 'imports' },
  domains: {
    room: 'domains',
    also: {
      'email-delivery': 'read when an email is signed and sent',
      bounces: 'whether a host is a return path',
    },
  },
  domain_keys: { room: 'domains' },
  emails: {
    room: 'emails',
    also: {
      'email-delivery': 'changes their states',
      bounces: 'the email of a notification',
      subscribers: 'the mode of the email of an unsubscribe link',
      'stored-messages': 'the account of a captured message',
      segments: 'people are chosen by what happened to emails to them',
      campaigns: 'whether emails of a campaign wait',
    },
  },
  campaigns: { room: 'campaigns', also: { 'email-delivery': 'whether an email of it may leave' } },
  campaign_recipients: {
    room: 'campaigns',
    also: {
      'email-delivery': 'whether a person of a campaign is still in its audience',
      subscribers: 'the person of the email of an unsubscribe link',
    },
  },
  campaign_variants: { room: 'campaigns' },
  email_contents: { room: 'emails', also: { 'email-delivery': 'read when it is sent' } },
  email_metadata: { room: 'emails' },
  email_tags: { room: 'emails' },
  email_subjects: { room: 'emails', also: { 'email-delivery': 'deleted with the email' } },
  email_attachments: { room: 'emails', also: { 'email-delivery': 'read when it is sent' } },
  email_recipients: {
    room: 'emails',
    also: {
      'email-delivery': 'changes their states',
      bounces: 'whom a notification is about',
      tracking: 'whether a link belongs to an email',
      segments: 'people are chosen by what happened to emails to them',
      campaigns: 'how far the emails of a campaign are',
    },
  },
  email_timeline: { room: 'emails', also: { 'email-delivery': 'adds what happened' } },
  suppressions: {
    room: 'suppressions',
    also: { 'email-delivery': 'a hard bounce adds an address; who may be sent to is decided with locks' },
  },
  captured_messages: { room: 'stored-messages' },
  inbound_messages: { room: 'stored-messages' },
  idempotency_keys: { room: 'http' },
  rate_limit_windows: { room: 'http' },
  statistics_deltas: { room: 'statistics' },
  statistics_hours: { room: 'statistics' },
  statistics_days: { room: 'statistics' },
  campaign_links: { room: 'statistics' },
  settings: {
    room: 'config',
    also: { outbox: 'where positions began', emails: 'which older emails can be searched by subject' },
  },
}

const builders = 'selectFrom|insertInto|updateTable|deleteFrom|innerJoin|leftJoin'

/** The tables that the statements in a source name. */
function tablesIn(source: string): string[] {
  const code = source.replaceAll(/\/\*[\s\S]*?\*\//g, '').replaceAll(/^\s*\/\/.*$/gm, '')
  return Object.keys(owners).filter((table) =>
    new RegExp(`(${builders})\\(\\s*'${table}\\b|\\b(FROM|JOIN|UPDATE|INTO|ONLY)\\s+${table}\\b`).test(code),
  )
}

const uses = globSync('server/*/**/*.ts')
  .map((file) => ({ file, room: file.split('/')[1] ?? '' }))
  .filter(({ room }) => room !== 'database')
  .flatMap(({ file, room }) => tablesIn(readFileSync(file, 'utf8')).map((table) => ({ file, room, table })))

const mayUse = (room: string, { room: owner, also = {} }: Owner) => room === owner || room in also

test('every table has an owner', () => {
  const schema = readFileSync('server/database/schema.ts', 'utf8')
  const tables = Array.from(schema.matchAll(/^ {2}(\w+): \w+Table$/gm), ([, name]) => name)
  expect(Object.keys(owners).toSorted()).toEqual(tables.toSorted())
})

describe.each(Object.entries(owners))('%s', (table, owner) => {
  const own = uses.filter((use) => use.table === table)

  test(`${table} is named by ${owner.room} and the rooms that have a reason`, () => {
    expect(own.filter(({ room }) => !mayUse(room, owner)).map(({ file }) => file)).toEqual([])
  })

  test(`${table} has no reason for a room that does not name it`, () => {
    const rooms = new Set(own.map(({ room }) => room))
    expect(Object.keys(owner.also ?? {}).filter((room) => !rooms.has(room))).toEqual([])
  })
})

test('a statement in TypeScript or SQL is found, a comment is not', () => {
  expect(tablesIn("db.selectFrom('emails as e')")).toEqual(['emails'])
  expect(tablesIn('sql`DELETE FROM deliveries WHERE id = 1`')).toEqual(['deliveries'])
  expect(tablesIn('// reads FROM deliveries\n/* UPDATE emails */')).toEqual([])
})
