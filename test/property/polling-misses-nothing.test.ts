import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { type RawBuilder, sql } from 'kysely'
import { createTransport } from 'nodemailer'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { eventType, reachesMode } from '../../contract/event-types.ts'
import { exampleId } from '../../contract/ids.ts'
import { contract } from '../../contract/index.ts'
import { type Mode, modes } from '../../contract/mode.ts'
import { connect, type Db, inTransaction, type Trx } from '../../server/database/connection.ts'
import { runDueChecks } from '../../server/domains/check-domain.ts'
import { createEventService } from '../../server/events/service.ts'
import { systemClock } from '../../server/lib/clock.ts'
import { createMailTokens } from '../../server/message/mail-tokens.ts'
import { createLogger } from '../../server/observability/logging.ts'
import { createOutbox, type NewEvent } from '../../server/outbox/append.ts'
import { newId } from '../../server/shared/ids.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { seedEmail } from '../support/emails.ts'
import { live } from '../support/scope.ts'
import { encryptionKey, startTestService, type TestService } from '../support/service.ts'

/*
 * Whoever goes on after the last event they saw sees every committed event once, in the same order as everybody else,
 * whatever is done meanwhile.
 */

const { exampleBody } = eventType('subscriber.added')
const added: NewEvent = {
  type: 'subscriber.added',
  data: { subscriberId: exampleId('subscriber'), email: 'ada@example.com', status: 'active' },
}

/** The statement with which versions before positions appended. */
function appendAsBefore(id: string, accountId: string): RawBuilder<unknown> {
  return sql`
    WITH event AS (
      INSERT INTO events (id, account_id, type, body, created_at)
      VALUES (${id}, ${accountId}, 'subscriber.added', ${JSON.stringify({ ...exampleBody, id })}, now())
      RETURNING id, account_id, type
    )
    INSERT INTO outbox (event_id, account_id, type) SELECT id, account_id, type FROM event
  `
}

/** A transaction that is ended from outside. */
async function begin(db: Db) {
  const begun = Promise.withResolvers<Trx>()
  const ended = Promise.withResolvers<'commit' | 'rollback'>()
  const done = inTransaction(db, async (trx) => {
    begun.resolve(trx)
    if ((await ended.promise) === 'rollback') throw new Error('rolled back')
  }).catch((error: Error) => {
    if (error.message !== 'rolled back') throw error
  })
  const trx = await begun.promise
  return {
    trx,
    async end(how: 'commit' | 'rollback'): Promise<void> {
      ended.resolve(how)
      await done
    },
  }
}

describe('in any order of steps', () => {
  /** The `application_name` of sessions of the service and of its earlier versions. */
  const poolNames = ['postern', 'postern workers', 'postern mail', 'psql']
  const events = createEventService()
  const outbox = createOutbox({ clock: systemClock, wake: () => undefined })
  let database: TestDatabase
  let pools: Db[]

  beforeAll(async () => {
    database = await createTestDatabase()
    const { connectionString } = database
    pools = poolNames.map((name) =>
      connect({ connectionString, applicationName: name, max: 8, onError: () => undefined }),
    )
  })
  afterAll(async () => {
    for (const pool of pools) await pool.destroy()
    await database.drop()
  })

  type Step =
    | { do: 'append'; writer: number; account: number; count: number; asBefore: boolean }
    | { do: 'end'; writer: number; how: 'commit' | 'rollback' }
    | { do: 'take'; fanOut: number; count: number }
    | { do: 'leave'; fanOut: number; how: 'commit' | 'rollback' }
    | { do: 'poll'; poller: number; limit: number }

  const how = fc.constantFrom<('commit' | 'rollback')[]>('commit', 'commit', 'commit', 'rollback')
  const small = (max: number, min = 0) => fc.integer({ min, max })
  const step: fc.Arbitrary<Step> = fc.oneof(
    {
      weight: 5,
      arbitrary: fc.record({
        do: fc.constant('append' as const),
        writer: small(5),
        account: small(1),
        count: small(3, 1),
        asBefore: fc.boolean(),
      }),
    },
    { weight: 4, arbitrary: fc.record({ do: fc.constant('end' as const), writer: small(5), how }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('take' as const), fanOut: small(1), count: small(6, 1) }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('leave' as const), fanOut: small(1), how }) },
    { weight: 5, arbitrary: fc.record({ do: fc.constant('poll' as const), poller: small(3), limit: small(4, 1) }) },
  )

  async function run(steps: readonly Step[]): Promise<void> {
    const accounts = [newId('account', new Date()), newId('account', new Date())] as const
    const committed = new Map<string, Set<string>>(accounts.map((account) => [account, new Set()]))
    const writers = new Map<number, Awaited<ReturnType<typeof begin>> & { written: [string, string][] }>()
    const fanOuts = new Map<number, Awaited<ReturnType<typeof begin>> & { taken: string[] }>()
    const pollers = [0, 1, 2, 3].map((index) => ({ account: accounts[index % 2] as string, seen: [] as string[] }))
    const poolOf = (index: number) => pools[index % pools.length] as Db

    async function poll(index: number, limit: number): Promise<number> {
      const { account, seen } = pollers[index] ?? expect.fail('no such poller')
      const { data } = await events.list(poolOf(index), live(account), { limit, order: 'asc', after: seen.at(-1) })
      seen.push(...data.map(({ id }) => String(id)))
      return data.length
    }

    async function take(next: Step): Promise<void> {
      switch (next.do) {
        case 'append': {
          const writer = writers.get(next.writer) ?? { ...(await begin(poolOf(next.writer))), written: [] }
          writers.set(next.writer, writer)
          const account = accounts[next.account] as string
          if (next.asBefore) {
            const id = newId('event', new Date())
            await appendAsBefore(id, account).execute(writer.trx)
            writer.written.push([account, id])
            return
          }
          const ids = await outbox.append(
            writer.trx,
            live(account),
            Array.from({ length: next.count }, () => added),
          )
          // So that it is not sent with the COMMIT alone.
          await sql`SELECT 1`.execute(writer.trx)
          writer.written.push(...ids.map((id): [string, string] => [account, id]))
          return
        }
        case 'end': {
          const writer = writers.get(next.writer)
          writers.delete(next.writer)
          await writer?.end(next.how)
          if (next.how === 'commit') for (const [account, id] of writer?.written ?? []) committed.get(account)?.add(id)
          return
        }
        case 'take': {
          if (fanOuts.has(next.fanOut)) return
          const fanOut = await begin(poolOf(next.fanOut))
          const { rows } = await sql<{ event_id: string }>`
            SELECT event_id FROM outbox ORDER BY event_id LIMIT ${next.count} FOR UPDATE SKIP LOCKED
          `.execute(fanOut.trx)
          fanOuts.set(next.fanOut, { ...fanOut, taken: rows.map(({ event_id }) => event_id) })
          return
        }
        case 'leave': {
          const fanOut = fanOuts.get(next.fanOut)
          if (fanOut === undefined) return
          fanOuts.delete(next.fanOut)
          await sql`DELETE FROM outbox WHERE event_id = ANY(${fanOut.taken}::text[])`.execute(fanOut.trx)
          await fanOut.end(next.how)
          return
        }
        case 'poll':
          await poll(next.poller, next.limit)
      }
    }

    for (const next of steps) await take(next)
    for (const writer of writers.keys()) await take({ do: 'end', writer, how: 'commit' })
    for (const fanOut of fanOuts.keys()) await take({ do: 'leave', fanOut, how: 'commit' })
    for (const [index, { account, seen }] of pollers.entries()) {
      while ((await poll(index, 100)) > 0);
      expect(seen.toSorted()).toEqual([...(committed.get(account) ?? [])].toSorted())
      expect(seen).toEqual(pollers[index % 2]?.seen)
    }
  }

  test('each event is seen once, by all in one order, and none is missed', async () => {
    await fc.assert(fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 60 }), run), { numRuns: 60 })
  })
})

describe('while two processes of the service and another program write', () => {
  let one: TestService
  let two: TestService

  beforeAll(async () => {
    one = await startTestService({ mail: { inbound: { host: '127.0.0.1', port: 0, tls: null } } })
    await one.client.succeed(contract.domains.create, { body: { name: 'polled.test' } })
    two = await startTestService({ beside: one })
  })
  afterAll(async () => {
    await two.stop()
    await one.stop()
  })

  test('pollers in tight loops see each event once, in one order', async () => {
    const { database, accountId, keys } = one
    const services = [one, two]
    let writing = true
    const pollers = [0, 1, 2, 3].map((index) => ({
      service: services[index % 2] as TestService,
      // Two poll with the key of each mode.
      mode: modes[index >> 1] as Mode,
      seen: [] as string[],
    }))
    const stored = async () =>
      database.db.selectFrom('events').select(['id', 'mode', 'type']).where('account_id', '=', accountId).execute()

    async function poll({ service, mode, seen }: (typeof pollers)[number]): Promise<void> {
      for (;;) {
        const after = seen.at(-1)
        const query = { order: 'asc' as const, limit: 1 + (seen.length % 50), ...(after !== undefined && { after }) }
        const wasWriting = writing
        const { data } = await service.client.as(keys[mode]).succeed(contract.events.list, { query })
        seen.push(...data.map(({ id }) => String(id)))
        if (!wasWriting && data.length === 0) return
      }
    }

    async function addPeople({ client }: TestService, name: string): Promise<void> {
      for (let count = 0; count < 25; count++) {
        await client.succeed(contract.subscribers.create, { body: { email: `${name}${count}@example.com` } })
      }
    }

    async function sendEmails({ client }: TestService): Promise<void> {
      const body = { from: 'a@example.com', to: ['delivered@simulator.test'], subject: 'Hello', text: 'Hello' }
      for (let count = 0; count < 12; count++) {
        await client.as(keys.test).succeed(contract.emails.send, { body })
      }
    }

    async function writeRaw(): Promise<void> {
      for (let count = 0; count < 25; count++) {
        await inTransaction(database.db, async (trx) => {
          await appendAsBefore(newId('event', new Date()), accountId).execute(trx)
          for (let pause = 0; pause < count % 7; pause++) await sql`SELECT 1`.execute(trx)
        })
      }
    }

    const notification = readFileSync(new URL('../bounces/corpus/postfix-user-unknown.eml', import.meta.url))
    const tokens = createMailTokens(encryptionKey)

    /** Has notifications come back by SMTP: each bounces an email. */
    async function takeBounces({ app }: TestService): Promise<void> {
      const { db } = database
      const server = createTransport({ host: '127.0.0.1', port: Number(app.inboundPort), ignoreTLS: true })
      for (let count = 0; count < 8; count++) {
        const emailId = await seedEmail(db, { accountId, at: new Date(), to: ['ada@example.org'] })
        await db.updateTable('email_recipients').set({ status: 'accepted' }).where('email_id', '=', emailId).execute()
        const to = tokens.returnPath({ emailId, position: null }, 'send.polled.test')
        await server.sendMail({ envelope: { from: '', to }, raw: notification })
      }
    }

    /** Makes the checks of domains that are due, as a worker does each minute: each finds the domain verified. */
    async function checkDomains(): Promise<void> {
      const { db } = database
      const own = connect({
        connectionString: database.connectionString,
        applicationName: 'postern workers',
        max: 2,
        onError: () => undefined,
      })
      const sender = { hostname: 'mail.postern.test', spfInclude: null }
      const outbox = createOutbox({ clock: systemClock, wake: () => undefined })
      const means = { db: own, clock: systemClock, outbox, logger: createLogger({ level: 'silent' }) }
      const { signal } = new AbortController()
      for (let count = 0; count < 8; count++) {
        await db.updateTable('domains').set({ status: 'pending', next_check_at: new Date() }).execute()
        await runDueChecks({ ...means, sender, dns: { servers: null }, isCaptured: true, signal })
        // Unless a worker of the service was first.
        const status = async () => (await db.selectFrom('domains').select('status').executeTakeFirstOrThrow()).status
        await expect.poll(status).toBe('verified')
      }
      await own.destroy()
    }

    const before = (await stored()).length

    async function write(): Promise<void> {
      const emails = [sendEmails(one), sendEmails(two), takeBounces(one)]
      await Promise.all([addPeople(one, 'one'), addPeople(two, 'two'), ...emails, checkDomains(), writeRaw()])
      // Each email of the simulator is sent and delivered.
      await expect.poll(async () => (await stored()).length).toBe(before + 25 + 25 + 25 + 2 * 12 * 2 + 8 + 8)
      writing = false
    }

    await Promise.all([write(), ...pollers.map(poll)])
    const events = await stored()
    const ofType = (wanted: string) => events.filter(({ type }) => type === wanted)
    expect(ofType('email.bounced')).toHaveLength(8)
    expect(ofType('domain.verified').length).toBeGreaterThanOrEqual(8)
    for (const { mode, seen } of pollers) {
      const visible = events.filter(({ mode: from, type }) => reachesMode(type, from, mode))
      expect(seen.toSorted()).toEqual(visible.map(({ id }) => id).toSorted())
      expect(seen).toEqual(pollers.find((poller) => poller.mode === mode)?.seen)
    }
  })
})
