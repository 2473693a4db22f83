import { pino } from 'pino'
import type { Recovery } from '../../contract/deliveries.ts'
import type { EventTypeName } from '../../contract/event-types.ts'
import type { Mode } from '../../contract/mode.ts'
import { deleteUnconfirmed } from '../../server/audiences/unconfirmed.ts'
import { startWakeUps } from '../../server/background/wake-ups.ts'
import { startBackgroundWorkers, type Workers } from '../../server/background/workers.ts'
import { type Db, inTransaction } from '../../server/database/connection.ts'
import { createDeliveryService, type DeliveryService } from '../../server/deliveries/service.ts'
import { fanOutBatch } from '../../server/fan-out/fan-out.ts'
import { createLoneEvents } from '../../server/fan-out/lone-events.ts'
import type { Clock } from '../../server/lib/clock.ts'
import type { Resolve } from '../../server/network/name-resolution.ts'
import { createOutbox, type NewEvent } from '../../server/outbox/append.ts'
import { type Queue, startQueue } from '../../server/queue/queue.ts'
import { type SecretBox, secretBox } from '../../server/secrets/secret-box.ts'
import { newId } from '../../server/shared/ids.ts'
import { createExchange, type Exchange } from '../../server/webhook-delivery/attempt/exchange.ts'
import { createKeyring } from '../../server/webhook-delivery/attempt/keyring.ts'
import { continueRecovery } from '../../server/webhook-delivery/recovery/recover.ts'
import {
  createWebhookChanges,
  type WebhookChanges,
  webhookChannel,
} from '../../server/webhook-delivery/webhook-changes.ts'
import { createTestTime } from './clock.ts'
import { createTestDatabase } from './database.ts'
import { patienceMs } from './patience.ts'
import { live, testing } from './scope.ts'

const testSecret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`

export type Engine = AsyncDisposable & {
  db: Db
  connectionString: string
  queue: Queue
  workers: Workers
  deliveries: DeliveryService
  webhookChanges: WebhookChanges
  secretBox: SecretBox
  clock: Clock
  accountId: string
  /** Jumps in time with everything: our clock, the queue's and the database's. */
  advance(seconds: number): Promise<void>
  /** Lets time pass, with every timer of the queue in it. */
  tick(seconds: number): Promise<void>
  /** Makes another account. Returns its id. */
  addAccount(): Promise<string>
  /** @param account Default: `accountId` */
  addWebhook(url: string, events?: EventTypeName[], account?: string): Promise<string>
  /**
   * Commits events of one type, all in one transaction, and answers their ids. Default: one `contact.deleted` of
   * `accountId`.
   */
  emit(count?: number, type?: 'contact.deleted' | 'contact.created', account?: string): Promise<string[]>
  /**
   * The deliveries of a webhook, oldest first, once there are `count` and each is as meant. Events of one transaction
   * may become deliveries one after another, so that all that are there may have ended before the last one is there.
   * Rejects at once when there are more, and after `patienceMs`. Default: each is as meant.
   */
  deliveriesOf(webhookId: string, count: number, isMeant?: IsMeant): Promise<DeliveryState[]>
  /** The only delivery of a webhook, once it is there and as meant. Default: it is as meant. */
  deliveryOf(webhookId: string, isMeant?: IsMeant): Promise<DeliveryState>
  /** Those deliveries of a webhook that are as meant, oldest first, once there are `count`, whatever the others are. */
  someDeliveriesOf(webhookId: string, count: number, isMeant: IsMeant): Promise<DeliveryState[]>
  /** The deliveries of a webhook as they are now, oldest first. */
  deliveriesNow(webhookId: string): Promise<DeliveryState[]>
  /**
   * Asks for a recovery of all events since a time and carries it on to its end, as a worker would, also where no
   * worker runs. Returns what it says of itself then. `mode`: that of the webhook, default `live`.
   */
  recover(webhookId: string, since: Date, mode?: Mode): Promise<Recovery>
  attemptsOf(deliveryId: string): Promise<{ number: number; response_status: number | null; error: string | null }[]>
  /** Fans out by hand, as another process would. */
  fanOut(): Promise<void>
  /** Starts workers anew, as another process would. */
  startWorkers(): Promise<void>
  stop(): Promise<void>
}

export type DeliveryState = {
  id: string
  event_id: string
  status: string
  attempt_count: number
  next_attempt_at: Date | null
  completed_at: Date | null
}

type IsMeant = (row: DeliveryState) => boolean

/** Whether a delivery has been accepted. */
export const hasSucceeded: IsMeant = ({ status }) => status === 'succeeded'

/** Whether nothing more is sent for a delivery. */
export const hasEnded: IsMeant = ({ status }) => status !== 'pending'

/** Whether so many attempts at a delivery have ended. */
export const attempted =
  (times: number): IsMeant =>
  ({ attempt_count }) =>
    attempt_count === times

export type EngineOptions = {
  /** Default: 32. */
  places?: number
  /** Default: 8. */
  endpointMax?: number
  /** Default: a real exchange to loopback. */
  exchange?: Exchange
  exchangeTimeoutMs?: number
  /** How the exchange resolves the names of hosts. Default: as the service does. */
  resolve?: Resolve
  /** Default: 30 days. */
  retentionMs?: number
  /** How its connection for notifications reaches the database. Default: directly. */
  wakeUpsThrough?: (connectionString: string) => Promise<string>
}

const start = new Date('2026-03-01T09:30:00.000Z')

/** The whole way from the outbox to the receiver, without HTTP in front, on a database and a clock of its own. */
export async function startEngine(options: EngineOptions = {}): Promise<Engine> {
  const { clock, queueClock, sessionOptions } = createTestTime(start)
  const database = await createTestDatabase({ sessionOptions })
  const { db, connectionString } = database
  const box = secretBox(Buffer.alloc(32, 1))
  const keyring = createKeyring(box)
  const retentionMs = options.retentionMs ?? 30 * 24 * 3_600_000
  const fail = (error: Error) => {
    throw error
  }
  const queue = await startQueue({ connectionString, works: true, onError: fail, clock: queueClock, sessionOptions })
  const exchange =
    options.exchange ??
    createExchange({
      policy: { allowHttp: true, allowPrivateNetworks: true },
      clock,
      ...(options.exchangeTimeoutMs === undefined ? {} : { timeoutMs: options.exchangeTimeoutMs }),
      ...(options.resolve === undefined ? {} : { resolve: options.resolve }),
    })
  const webhookChanges = createWebhookChanges()
  const wakeUps = startWakeUps({
    connectionString: (await options.wakeUpsThrough?.(connectionString)) ?? connectionString,
    on: { [webhookChannel]: webhookChanges.tellNotified },
    hearing: webhookChanges,
    onError: () => undefined,
  })
  const runWorkers = () =>
    startBackgroundWorkers({
      db,
      queue,
      exchange,
      keyring,
      clock,
      logger: pino({ level: 'fatal' }),
      places: options.places ?? 32,
      endpointMax: options.endpointMax ?? 8,
      pollIntervalMs: 50,
      retentionMs,
      statisticsMs: 400 * 24 * 3_600_000,
      checkDomains: async () => {},
      deleteExpiredOfHttp: async () => {},
      deleteUnconfirmed: ({ outbox }) => deleteUnconfirmed({ db, clock, outbox }),
      indexOlderEmails: async () => 0,
      webhookChanges,
    })
  let workers = await runWorkers()
  const accountId = await addAccount()
  const outbox = createOutbox({
    clock,
    wake: () => workers.wakeFanOut(),
    // Of the workers that run.
    loneEvents: createLoneEvents({
      clock,
      leasing: {
        lease: (account) => workers.leasing.lease(account),
        take: (events) => workers.leasing.take(events),
        release: (ids) => workers.leasing.release(ids),
      },
    }),
  })
  const deliveries = createDeliveryService({
    queue,
    exchange,
    keyring,
    clock,
    retentionMs,
    wake: (flow) => workers.wakeDelivery(flow),
    webhookChanges,
  })

  async function addAccount(): Promise<string> {
    const id = newId('account', start)
    await db.insertInto('accounts').values({ id, name: 'Test', plan: 'scale' }).execute()
    return id
  }

  function deliveriesNow(webhookId: string): Promise<DeliveryState[]> {
    return db
      .selectFrom('deliveries')
      .select(['id', 'event_id', 'status', 'attempt_count', 'next_attempt_at', 'completed_at'])
      .where('webhook_id', '=', webhookId)
      .orderBy('id')
      .execute()
  }

  async function deliveriesOnce(
    webhookId: string,
    isEnough: (rows: DeliveryState[]) => boolean,
  ): Promise<DeliveryState[]> {
    const deadline = performance.now() + patienceMs
    for (;;) {
      const rows = await deliveriesNow(webhookId)
      if (isEnough(rows)) return rows
      if (performance.now() > deadline) throw new Error(`the deliveries stay at ${JSON.stringify(rows)}`)
      // A settlement follows an attempt within milliseconds; the database is asked until it has.
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
  }

  async function deliveriesOf(webhookId: string, count: number, isMeant: IsMeant = () => true) {
    const isEnough = (rows: DeliveryState[]) => rows.length > count || (rows.length === count && rows.every(isMeant))
    const rows = await deliveriesOnce(webhookId, isEnough)
    if (rows.length > count) throw new Error(`there are more than ${count} deliveries: ${JSON.stringify(rows)}`)
    return rows
  }

  async function stop(): Promise<void> {
    await workers.stop(2_000)
    await queue.stop()
    await wakeUps.stop()
    await exchange.close()
    await database.drop()
  }

  return {
    db,
    connectionString,
    queue,
    get workers() {
      return workers
    },
    deliveries,
    webhookChanges,
    secretBox: box,
    clock,
    accountId,
    async advance(seconds) {
      await queueClock.setTime(queueClock.now() + seconds * 1000)
      workers.wakeDelivery()
    },
    async tick(seconds) {
      await queueClock.tick(seconds * 1000)
    },
    addAccount,
    async addWebhook(url, events = ['contact.deleted'], account = accountId) {
      const id = newId('webhook', clock.now())
      await db
        .insertInto('webhooks')
        .values({
          id,
          account_id: account,
          url,
          events,
          secret: box.seal(testSecret),
          description: null,
          disabled_reason: null,
          failing_since: null,
          previous_secret: null,
          previous_secret_expires_at: null,
        })
        .execute()
      return id
    },
    emit(count = 1, type = 'contact.deleted', account = accountId) {
      const ids = { subscriberId: newId('subscriber', start), audienceId: newId('audience', start) }
      const event: NewEvent =
        type === 'contact.deleted'
          ? { type, data: ids }
          : { type, data: { ...ids, email: 'ada@example.com', status: 'active' } }
      const events = Array.from({ length: count }, () => event)
      return inTransaction(db, (trx) => outbox.append(trx, live(account), events))
    },
    deliveriesOf,
    async deliveryOf(webhookId, isMeant) {
      const [row] = await deliveriesOf(webhookId, 1, isMeant)
      return row as DeliveryState
    },
    async someDeliveriesOf(webhookId, count, isMeant) {
      const rows = await deliveriesOnce(webhookId, (all) => all.filter(isMeant).length === count)
      return rows.filter(isMeant)
    },
    deliveriesNow,
    async recover(webhookId, since, mode = 'live') {
      const scope = (mode === 'live' ? live : testing)(accountId)
      const { id } = await deliveries.recover(db, scope, webhookId, { since: since.toISOString() })
      const wake = (flow: number) => workers.wakeDelivery(flow)
      for (let task = 0; ; task++) {
        await continueRecovery({ db, queue, clock, retentionMs, wake }, { accountId, recoveryId: id, task })
        const recovery = await deliveries.getRecovery(db, scope, webhookId, id)
        if (recovery.status !== 'running') return recovery
      }
    },
    attemptsOf: (deliveryId) =>
      db
        .selectFrom('attempts')
        .select(['number', 'response_status', 'error'])
        .where('delivery_id', '=', deliveryId)
        .orderBy('number')
        .execute(),
    async fanOut() {
      while ((await fanOutBatch({ db, queue, clock })).events > 0);
    },
    async startWorkers() {
      workers = await runWorkers()
    },
    stop,
    [Symbol.asyncDispose]: stop,
  }
}
