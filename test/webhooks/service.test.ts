import { createHmac, randomBytes } from 'node:crypto'
import { sql } from 'kysely'
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { exampleId } from '../../contract/ids.ts'
import { inTransaction } from '../../server/database/connection.ts'
import { createDeliveryService } from '../../server/deliveries/service.ts'
import { fanOutBatch } from '../../server/fan-out/fan-out.ts'
import { startQueue } from '../../server/queue/queue.ts'
import { secretBox } from '../../server/secrets/secret-box.ts'
import { createExchange } from '../../server/webhook-delivery/attempt/exchange.ts'
import { createKeyring } from '../../server/webhook-delivery/attempt/keyring.ts'
import { createWebhookChanges } from '../../server/webhook-delivery/webhook-changes.ts'
import { createWebhookService } from '../../server/webhooks/service.ts'
import { startReceiver } from '../support/receiver.ts'
import { live } from '../support/scope.ts'
import { createWorld, refusal } from '../support/worlds/audiences.ts'

let world: Awaited<ReturnType<typeof createWebhookWorld>>

beforeAll(async () => {
  world = await createWebhookWorld()
})
afterAll(() => world.end())

/** Webhooks with their deliveries, and nobody who sends them. */
async function createWebhookWorld() {
  const people = await createWorld()
  const { db, clock, connectionString } = people
  const box = secretBox(randomBytes(32))
  const openPolicy = { allowHttp: true, allowPrivateNetworks: true }
  const queue = await startQueue({ connectionString, works: false, onError: () => undefined })
  const exchange = createExchange({ policy: openPolicy, clock })
  const webhookChanges = createWebhookChanges()
  const deliveries = createDeliveryService({
    queue,
    exchange,
    keyring: createKeyring(box),
    clock,
    retentionMs: 86_400_000,
    wake: () => undefined,
    webhookChanges,
  })
  const parts = { clock, secretBox: box, deliveries, maxPerAccount: 1_000, maxPerCustomer: 20, webhookChanges }
  return {
    ...people,
    box,
    queue,
    deliveries,
    webhooks: createWebhookService({ ...parts, addressPolicy: openPolicy }),
    strict: createWebhookService({ ...parts, addressPolicy: { allowHttp: false, allowPrivateNetworks: false } }),
    /** Adds people, and makes the deliveries that tells. */
    async addPeople(count: number): Promise<void> {
      for (let person = 0; person < count; person++) {
        const email = `${randomBytes(6).toString('hex')}@example.com`
        await people.subscribers.create(db, live(people.account), { email })
      }
      await fanOutBatch({ db, queue, clock })
    },
    async end(): Promise<void> {
      await exchange.close()
      await queue.stop()
      await people.end()
    },
  }
}

const definition = { url: 'https://example.com/hooks', events: ['subscriber.added', 'subscriber.removed'] as const }

async function create() {
  const { db, account, webhooks } = world
  return webhooks.create(db, live(account), { url: definition.url, events: [...definition.events] })
}

async function stored(id: string) {
  return world.db.selectFrom('webhooks').selectAll().where('id', '=', id).executeTakeFirstOrThrow()
}

async function statusesOf(id: string): Promise<string[]> {
  const { data } = await world.deliveries.list(world.db, live(world.account), id, { limit: 100 })
  return data.map(({ status }) => status)
}

test('a new webhook shows its secret once, and is stored with it encrypted', async () => {
  const { db, account, webhooks, box } = world
  const { secret, ...webhook } = await create()
  expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
  expect(webhook).toMatchObject({ ...definition, description: null, status: 'enabled', disabledReason: null })
  expect(await webhooks.get(db, live(account), webhook.id)).toEqual({ ...webhook, health: expect.any(Object) })
  expect((await webhooks.list(db, live(account), { limit: 1 })).data).toEqual([webhook])
  const row = await stored(webhook.id)
  expect(row.secret.includes(secret)).toBe(false)
  expect(box.open(row.secret)).toBe(secret)
})

test.each(['http://example.com/', 'https://10.0.0.1/', 'https://[::1]/'])(
  'a new webhook is refused where %s is not allowed, and so is a change to it',
  async (url) => {
    const { db, account, strict } = world
    const refused = { code: 'rule_violation', details: [expect.objectContaining({ path: 'body.url' })] }
    await expect(strict.create(db, live(account), { url, events: ['email.sent'] })).rejects.toMatchObject(refused)
    const webhook = await create()
    await expect(strict.update(db, live(account), webhook.id, { url })).rejects.toMatchObject(refused)
    expect((await stored(webhook.id)).url).toBe(definition.url)
  },
)

test('changing a webhook keeps what is not given, and the time when nothing changed', async () => {
  const { db, account, webhooks } = world
  const { secret, ...webhook } = await create()
  world.moveClock(1_000)
  const changed = await webhooks.update(db, live(account), webhook.id, { description: 'CRM' })
  expect(changed).toEqual({ ...webhook, description: 'CRM', updatedAt: world.clock.now().toISOString() })
  world.moveClock(1_000)
  expect(await webhooks.update(db, live(account), webhook.id, { description: 'CRM', url: webhook.url })).toEqual(
    changed,
  )
})

test('changing a webhook at once in two fields keeps both', async () => {
  const { db, account, webhooks } = world
  for (let round = 0; round < 10; round++) {
    const { id } = await create()
    await Promise.all([
      webhooks.update(db, live(account), id, { description: 'CRM' }),
      webhooks.update(db, live(account), id, { events: ['contact.created'] }),
    ])
    expect(await webhooks.get(db, live(account), id)).toMatchObject({
      description: 'CRM',
      events: ['contact.created'],
    })
  }
})

test('changing a webhook to disabled cancels what is pending; enabling again resends nothing and forgives', async () => {
  const { db, account, webhooks, queue, addPeople } = world
  const { id } = await create()
  await addPeople(2)
  expect(await statusesOf(id)).toEqual(['pending', 'pending'])
  const deliveryIds = (await world.deliveries.list(db, live(account), id, { limit: 10 })).data.map(
    (delivery) => delivery.id,
  )
  await db.updateTable('webhooks').set({ failing_since: new Date() }).where('id', '=', id).execute()

  const disabled = await webhooks.update(db, live(account), id, { status: 'disabled' })
  expect(disabled).toMatchObject({ status: 'disabled', disabledReason: 'manual' })
  expect(await statusesOf(id)).toEqual(['canceled', 'canceled'])
  expect(await queue.missing(db, deliveryIds)).toEqual(deliveryIds)
  await addPeople(1)

  const enabled = await webhooks.update(db, live(account), id, { status: 'enabled' })
  expect(enabled).toMatchObject({ status: 'enabled', disabledReason: null })
  expect(await statusesOf(id)).toEqual(['canceled', 'canceled'])
  expect(await stored(id)).toMatchObject({ failing_since: null })
  await addPeople(1)
  expect(await statusesOf(id)).toEqual(['pending', 'canceled', 'canceled'])
})

/** Adds a disabled webhook with 7,001 pending deliveries: disabling has canceled the first 5,000. Returns its id. */
async function disabledInPart(): Promise<string> {
  const { db, account, webhooks, addPeople } = world
  const { id } = await create()
  await addPeople(1)
  await sql`
    INSERT INTO deliveries (id, account_id, webhook_id, event_id, event_type, next_attempt_at, created_at)
    SELECT left(id, -5) || lpad(n::text, 5, '0'), account_id, webhook_id, event_id, event_type, next_attempt_at, created_at
    FROM deliveries, generate_series(1, 12_000) AS n WHERE webhook_id = ${id}
  `.execute(db)
  await webhooks.update(db, live(account), id, { status: 'disabled' })
  expect(await countOf(id, 'pending')).toBe(7_001)
  return id
}

async function countOf(id: string, status: 'pending' | 'canceled'): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    SELECT count(*)::int AS count FROM deliveries WHERE webhook_id = ${id} AND status = ${status}
  `.execute(world.db)
  return rows[0]?.count ?? 0
}

test('enabling a webhook again sends nothing of what was pending, however much that was', async () => {
  const { db, account, webhooks } = world
  const id = await disabledInPart()
  await expect(webhooks.update(db, live(account), id, { status: 'enabled' })).resolves.toMatchObject({
    status: 'enabled',
  })
  expect(await countOf(id, 'pending')).toBe(0)
  expect(await countOf(id, 'canceled')).toBe(12_001)
})

test('enabling a webhook is put off when canceling what was pending takes more than five seconds', async () => {
  const { db, account, webhooks } = world
  const id = await disabledInPart()
  let at = performance.now()
  const ticking = vi.spyOn(performance, 'now').mockImplementation(() => (at += 6_000))
  onTestFinished(() => ticking.mockRestore())
  const refused = { code: 'unavailable', retryAfterSeconds: 5, message: expect.stringContaining('being canceled') }
  await expect(webhooks.update(db, live(account), id, { status: 'enabled' })).rejects.toMatchObject(refused)
  expect(await stored(id)).toMatchObject({ status: 'disabled' })
  ticking.mockRestore()
  expect(await countOf(id, 'pending')).toBe(2_001)
  await webhooks.update(db, live(account), id, { status: 'enabled' })
  expect(await countOf(id, 'pending')).toBe(0)
})

test('changing a webhook rolled back leaves it enabled and its deliveries pending', async () => {
  const { db, account, webhooks, addPeople } = world
  const { id } = await create()
  await addPeople(1)
  const undone = inTransaction(db, async (trx) => {
    await webhooks.update(trx, live(account), id, { status: 'disabled' })
    throw new Error('undo')
  })
  await expect(undone).rejects.toThrow('undo')
  expect(await webhooks.get(db, live(account), id)).toMatchObject({ status: 'enabled' })
  expect(await statusesOf(id)).toEqual(['pending'])
})

test('a deleted webhook is gone, and what was pending for it is canceled', async () => {
  const { db, account, webhooks, addPeople } = world
  const { id } = await create()
  await addPeople(1)
  const results = await Promise.all([1, 2].map(() => refusal(webhooks.delete(db, live(account), id))))
  expect(results.toSorted()).toEqual(['not refused', 'not_found'])
  expect(await refusal(webhooks.get(db, live(account), id))).toBe('not_found')
  const left = await db.selectFrom('deliveries').select('status').where('webhook_id', '=', id).execute()
  expect(left).toEqual([{ status: 'canceled' }])
})

test('a rotated secret is new, and the previous one is kept for 24 hours', async () => {
  const { db, account, webhooks, box, clock } = world
  const { id, secret: first } = await create()
  world.moveClock(1_000)
  const { secret: second, ...webhook } = await webhooks.rotateSecret(db, live(account), id)
  expect(second).toMatch(/^whsec_/)
  expect(second).not.toBe(first)
  expect(webhook).toMatchObject({ id, updatedAt: clock.now().toISOString() })
  const row = await stored(id)
  expect(box.open(row.secret)).toBe(second)
  expect(box.open(row.previous_secret ?? Buffer.alloc(0))).toBe(first)
  expect(row.previous_secret_expires_at?.getTime()).toBe(clock.now().getTime() + 24 * 3_600_000)

  const { secret: third } = await webhooks.rotateSecret(db, live(account), id)
  expect(box.open((await stored(id)).previous_secret ?? Buffer.alloc(0))).toBe(second)
  expect(third).not.toBe(second)
})

test('secrets of the last 24 hours stay valid through several rotations, at most five in all', async () => {
  const { db, account, webhooks } = world
  await using receiver = await startReceiver()
  const webhook = await webhooks.create(db, live(account), { url: receiver.url, events: ['contact.created'] })
  /** Which of the secrets made so far verify what is sent now, by their numbers. */
  async function verifying(): Promise<number[]> {
    await webhooks.test(db, live(account), webhook.id)
    const { body, headers } = receiver.requests.at(-1) ?? expect.fail('nothing was sent')
    const message = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`
    const given = String(headers['webhook-signature']).split(' ')
    return secrets.flatMap((secret, index) => {
      const key = Buffer.from(secret.slice('whsec_'.length), 'base64')
      return given.includes(`v1,${createHmac('sha256', key).update(message).digest('base64')}`) ? [index] : []
    })
  }
  const hours = 3_600_000
  const secrets = [webhook.secret]
  const rotate = async () => secrets.push((await webhooks.rotateSecret(db, live(account), webhook.id)).secret)

  await rotate()
  world.moveClock(10 * hours)
  await rotate()
  expect(await verifying()).toEqual([0, 1, 2])
  world.moveClock(14 * hours)
  expect(await verifying()).toEqual([1, 2])
  world.moveClock(9 * hours)
  for (let count = 3; count <= 7; count++) await rotate()
  expect(await verifying()).toEqual([3, 4, 5, 6, 7])
  world.moveClock(24 * hours)
  expect(await verifying()).toEqual([7])
})

test('of rotations at once none loses a secret', async () => {
  const { db, account, webhooks, box } = world
  const { id, secret } = await create()
  const rotatedAtOnce = await Promise.all([1, 2, 3, 4].map(() => webhooks.rotateSecret(db, live(account), id)))
  const row = await stored(id)
  const kept = [row.secret, row.previous_secret ?? Buffer.alloc(0), ...row.earlier_secrets].map((one) => box.open(one))
  expect(kept.toSorted()).toEqual([secret, ...rotatedAtOnce.map((one) => one.secret)].toSorted())
  expect(kept.at(-1)).toBe(secret)
})

test('a test event is of the first subscribed type or of the one asked for, and signed', async () => {
  const { db, account, webhooks } = world
  await using receiver = await startReceiver()
  const webhook = await webhooks.create(db, live(account), {
    url: receiver.url,
    events: ['contact.deleted', 'contact.created'],
  })

  expect(await webhooks.test(db, live(account), webhook.id)).toMatchObject({ success: true })
  await webhooks.update(db, live(account), webhook.id, { status: 'disabled' })
  expect(await webhooks.test(db, live(account), webhook.id, 'email.sent')).toMatchObject({ success: true })
  expect(receiver.requests.map(({ body }) => JSON.parse(body.toString()).type)).toEqual([
    'contact.deleted',
    'email.sent',
  ])
  for (const { body, headers } of receiver.requests) {
    const signature = createHmac('sha256', webhook.secret).update(body).digest('hex')
    expect(headers['x-service-signature']).toBe(signature)
  }
  expect(await statusesOf(webhook.id)).toEqual(['succeeded', 'succeeded'])
})

test("another account's webhook does not exist", async () => {
  const { db, stranger, webhooks } = world
  const { id, secret, ...rest } = await create()
  const attempts = [
    webhooks.get(db, live(stranger), id),
    webhooks.update(db, live(stranger), id, { status: 'disabled' }),
    webhooks.delete(db, live(stranger), id),
    webhooks.rotateSecret(db, live(stranger), id),
    webhooks.test(db, live(stranger), id),
    webhooks.get(db, live(stranger), exampleId('webhook')),
  ]
  expect(await Promise.all(attempts.map(refusal))).toEqual(attempts.map(() => 'not_found'))
  expect((await webhooks.list(db, live(stranger), { limit: 10 })).data).toEqual([])
  expect(await webhooks.get(db, live(world.account), id)).toEqual({ id, ...rest, health: expect.any(Object) })
})
