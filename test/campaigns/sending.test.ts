import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { contract } from '../../contract/index.ts'
import { newId } from '../../server/shared/ids.ts'
import { type ScriptedSmtp, startScriptedSmtp } from '../support/scripted-smtp.ts'
import type { SmtpReaction, SmtpStage } from '../support/scripted-smtp-session.ts'
import { startTestService, type TestService } from '../support/service.ts'

const connections = 5
/** One is left for what is sent singly. */
const inBulk = 4
const people = 200

let server: ScriptedSmtp
let service: TestService

beforeAll(async () => {
  server = await startScriptedSmtp()
  service = await startTestService({
    publicUrl: 'https://mail.sender.test',
    mail: {
      transport: 'relay',
      relay: { host: '127.0.0.1', port: server.port, tls: 'opportunistic', credentials: null },
      connectionsPerHost: connections,
      concurrency: connections,
    },
  })
  await service.client.succeed(contract.domains.create, { body: { name: 'sender.test' } })
  // As if its records had been found.
  const verified = { status: 'verified' as const, verified_at: new Date(), next_check_at: null }
  await service.database.db.updateTable('domains').set(verified).execute()
})
afterAll(async () => {
  await service.stop()
  await server[Symbol.asyncDispose]()
})

type HeldCampaign = {
  id: string
  /** Lets the conversations go on, but for the first `kept`. Default: all. */
  release: (reaction?: SmtpReaction, kept?: number) => void
}

/** Sends a campaign to people of its own, and waits until the mail server holds conversations of it at a stage. */
async function holdOne(name: string, stage: SmtpStage = 'message'): Promise<HeldCampaign> {
  const { client, accountId, database } = service
  const { id: audienceId } = await client.succeed(contract.audiences.create, { body: { name } })
  const at = new Date()
  const ids = Array.from({ length: people }, () => newId('subscriber', at))
  await sql`
    WITH person AS (
      INSERT INTO subscribers (id, account_id, email, email_key, created_at, updated_at)
      SELECT id, ${accountId}, address, address, ${at}, ${at}
      FROM unnest(${ids}::text[]) AS i (id), LATERAL (SELECT ${name} || '.' || id || '@example.com' AS address) AS a
      RETURNING id
    )
    INSERT INTO contacts (audience_id, subscriber_id, account_id, status, created_at, updated_at)
    SELECT ${audienceId}, id, ${accountId}, 'active', ${at}, ${at} FROM person
  `.execute(database.db)
  const held: PromiseWithResolvers<SmtpReaction | undefined>[] = []
  let released: { reaction: SmtpReaction | undefined } | undefined
  const full = Promise.withResolvers<void>()
  server.at(stage, () => {
    if (released !== undefined) return released.reaction
    const one = Promise.withResolvers<SmtpReaction | undefined>()
    if (held.push(one) === inBulk) full.resolve()
    return one.promise
  })
  const body = { name, audienceId, from: 'hello@sender.test', subject: 'News', content: { text: 'News.' } }
  const { id } = await client.succeed(contract.campaigns.create, { body })
  await client.succeed(contract.campaigns.send, { params: { id }, body: {} })
  await full.promise
  await expect.poll(async () => (await statistics(id)).queued).toBe(people)
  return {
    id,
    release(reaction, kept = 0) {
      released = { reaction }
      for (const one of held.slice(kept)) one.resolve(reaction)
    },
  }
}

const statistics = (id: string) => service.client.succeed(contract.campaigns.statistics, { params: { id } })
const messagesTo = (name: string) =>
  server.messages.filter(({ recipients }) => recipients[0]?.address.startsWith(`${name}.`))

async function untilDone(id: string, status: 'sending' | 'completed'): Promise<void> {
  if (status === 'sending') await expect.poll(() => countOf(status)).toBe(0)
  else {
    const campaign = () => service.client.succeed(contract.campaigns.get, { params: { id } })
    await expect.poll(campaign).toMatchObject({ status })
  }
}

async function countOf(status: 'sending'): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    SELECT count(*)::int AS count FROM email_recipients WHERE status = ${status}
  `.execute(service.database.db)
  return rows[0]?.count ?? Number.NaN
}

test('of a paused campaign only what is in a conversation is handed over, and after resuming each person has it once', async () => {
  const { id, release } = await holdOne('pause')
  expect(await countOf('sending')).toBeGreaterThan(inBulk)
  await service.client.succeed(contract.campaigns.pause, { params: { id }, body: {} })
  await expect.poll(() => countOf('sending')).toBe(inBulk)
  await expect.poll(() => statistics(id)).toMatchObject({ queued: inBulk, waiting: people - inBulk })
  release()
  await untilDone(id, 'sending')
  expect(messagesTo('pause')).toHaveLength(inBulk)
  expect(await statistics(id)).toMatchObject({ recipients: people })
  await service.client.succeed(contract.campaigns.resume, { params: { id }, body: {} })
  await untilDone(id, 'completed')
  const addresses = messagesTo('pause').map(({ recipients }) => recipients[0]?.address)
  expect(addresses).toHaveLength(people)
  expect(new Set(addresses).size).toBe(people)
  expect(await statistics(id)).toMatchObject({ recipients: people, handedOver: people, waiting: 0, queued: 0 })
})

test('of a campaign whose window closes only what is in a conversation is handed over, and each person has it once', async () => {
  const { id, release } = await holdOne('window')
  const { db } = service.database
  expect(await countOf('sending')).toBeGreaterThan(inBulk)
  // As if it closed now, for two hours at least.
  const clock = (hours: number) => new Date(Date.now() + hours * 3_600_000).toISOString().slice(11, 16)
  const days = ['monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday', 'sunday']
  const closed = JSON.stringify({ from: clock(3), to: clock(4), timezone: 'UTC', days })
  const ofCampaign = db.updateTable('campaigns').where('id', '=', id)
  await ofCampaign.set({ send_window: closed }).execute()
  await expect.poll(() => countOf('sending')).toBe(inBulk)
  await expect.poll(() => statistics(id)).toMatchObject({ queued: inBulk, waiting: people - inBulk })
  release()
  await untilDone(id, 'sending')
  expect(messagesTo('window')).toHaveLength(inBulk)
  await ofCampaign.set({ send_window: null, waiting_for: null, waiting_until: null, due_at: new Date() }).execute()
  await untilDone(id, 'completed')
  const addresses = messagesTo('window').map(({ recipients }) => recipients[0]?.address)
  expect(addresses).toHaveLength(people)
  expect(new Set(addresses).size).toBe(people)
})

test('an email that is sent singly overtakes all of a campaign that is not in a conversation', async () => {
  const { id, release } = await holdOne('overtaken')
  const before = server.messages.length
  const body = { from: 'hello@sender.test', to: ['single.ada@example.com'], subject: 'A receipt', text: 'Thank you.' }
  await service.client.succeed(contract.emails.send, { body })
  await server.reached('message', before + connections)
  release()
  await untilDone(id, 'completed')
  const arrived = server.messages.slice(before)
  const place = arrived.findIndex(({ recipients }) => recipients[0]?.address === 'single.ada@example.com')
  expect(place).toBeGreaterThanOrEqual(0)
  expect(place).toBeLessThan(connections)
  expect(messagesTo('overtaken')).toHaveLength(people)
})

test('a retry that waits for a connection keeps its time when its campaign is paused', async () => {
  const { id, release } = await holdOne('retried')
  const { db } = service.database
  // As if all that are not in hand had been refused for now an hour ago.
  await sql`
    UPDATE email_recipients SET status = 'deferred', attempt_count = 1, delayed_at = now(), next_attempt_at = now(),
      first_attempt_at = now() - interval '1 hour' WHERE status = 'queued' AND address LIKE 'retried.%'
  `.execute(db)
  const second = Promise.withResolvers<undefined>()
  let first = (await countOf('sending')) - inBulk
  server.at('message', () => (first-- > 0 ? undefined : second.promise))
  // One first attempt is not over, so that the campaign is not completed.
  release(undefined, 1)
  const retries = () =>
    sql<{ status: string; isTimed: boolean }>`
    SELECT status, next_attempt_at IS NOT NULL AS "isTimed" FROM email_recipients
    WHERE address LIKE 'retried.%' AND first_attempt_at < now() - interval '30 minutes'
  `.execute(db)
  const sending = async () => (await retries()).rows.filter(({ status }) => status === 'sending').length
  await expect.poll(sending).toBeGreaterThan(inBulk)
  await service.client.succeed(contract.campaigns.pause, { params: { id }, body: {} })
  await expect.poll(sending).toBe(inBulk - 1)
  const { rows } = await retries()
  expect(rows.filter(({ status, isTimed }) => status === 'deferred' && !isTimed)).toEqual([])
  second.resolve(undefined)
  release()
  await service.client.succeed(contract.campaigns.cancel, { params: { id }, body: {} })
  await untilDone(id, 'sending')
})

test('of a canceled campaign only what is in a conversation is handed over, and the server is not said to be away', async () => {
  const { id, release } = await holdOne('cancel')
  await service.client.succeed(contract.campaigns.cancel, { params: { id }, body: {} })
  await expect.poll(() => countOf('sending')).toBe(inBulk)
  server.at('message', () => undefined)
  const body = { from: 'hello@sender.test', to: ['ada@example.com'], subject: 'A receipt', text: 'Thank you.' }
  const { id: emailId } = await service.client.succeed(contract.emails.send, { body })
  const email = () => service.client.succeed(contract.emails.get, { params: { id: emailId } })
  await expect.poll(email, { timeout: 10_000 }).toMatchObject({ status: 'sent' })
  release()
  await untilDone(id, 'sending')
  const canceled = people - inBulk
  await expect.poll(() => statistics(id)).toMatchObject({ recipients: people, handedOver: inBulk, canceled, queued: 0 })
  expect(messagesTo('cancel')).toHaveLength(inBulk)
})

test('a conversation that breaks off after the pause of its campaign counts as an attempt', async () => {
  const { id, release } = await holdOne('broken', 'rcpt')
  await service.client.succeed(contract.campaigns.pause, { params: { id }, body: {} })
  await expect.poll(() => countOf('sending')).toBe(inBulk)
  release({ next: 'reset' })
  const waiting = people - inBulk
  await expect.poll(() => statistics(id)).toMatchObject({ queued: 0, handedOver: inBulk, deferred: inBulk, waiting })
})
