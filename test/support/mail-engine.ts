import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { sql } from 'kysely'
import { pino } from 'pino'
import { SMTPServer } from 'smtp-server'
import { type Db, inTransaction } from '../../server/database/connection.ts'
import type { RecipientFact } from '../../server/email-delivery/recipient-facts.ts'
import { createSigners } from '../../server/email-delivery/signers.ts'
import { type MailWorker, startMailWorker } from '../../server/email-delivery/worker.ts'
import type { Clock } from '../../server/lib/clock.ts'
import { createMailComposer } from '../../server/message/compose-in-thread.ts'
import { createMailTokens, type MailTokens } from '../../server/message/mail-tokens.ts'
import { createOutbox } from '../../server/outbox/append.ts'
import { type Queue, startQueue } from '../../server/queue/queue.ts'
import { sealPrivateKey } from '../../server/secrets/private-keys.ts'
import { secretBox } from '../../server/secrets/secret-box.ts'
import { newId } from '../../server/shared/ids.ts'
import { type Lane, lanes } from '../../server/shared/lanes.ts'
import { createTransport, type TransportKind } from '../../server/smtp/create-transport.ts'
import { createTestTime } from './clock.ts'
import { createTestDatabase } from './database.ts'
import { type SeedEmail, seedAccount, seedEmail } from './emails.ts'
import { patienceMs } from './patience.ts'

const start = new Date('2026-03-01T09:30:00.000Z')

/** Of the domain of each engine: an RSA key takes nearly as long as all else that starts with an engine. */
const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
const ed25519 = generateKeyPairSync('ed25519')

export type Received = { mailFrom: string; recipients: string[]; message: string }

/** The replies of the mail server of a test. Default: it accepts everything. Throw `smtpReply` to refuse. */
export type MailServerRules = {
  onRecipient?: (address: string) => Promise<void> | void
  /** Called when the whole message is there. */
  onMessage?: (received: Received) => Promise<void> | void
}

/** A refusal, for the rules of a mail server. */
export function smtpReply(responseCode: number, message: string): Error {
  return Object.assign(new Error(message), { responseCode })
}

/** A mail server on loopback that keeps what it takes. */
export async function startMailServer(rules: MailServerRules = {}) {
  const received: Received[] = []
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS', 'AUTH'],
    logger: false,
    onRcptTo({ address }, _session, callback) {
      Promise.resolve()
        .then(() => rules.onRecipient?.(address))
        .then(() => callback(), callback)
    },
    onData(stream, { envelope }, callback) {
      text(stream)
        .then(async (message) => {
          const mailFrom = envelope.mailFrom === false ? '' : envelope.mailFrom.address
          const one = { mailFrom, recipients: envelope.rcptTo.map(({ address }) => address), message }
          await rules.onMessage?.(one)
          received.push(one)
        })
        .then(() => callback(), callback)
    },
  })
  // A client may break a connection off.
  server.on('error', () => undefined)
  server.listen(0, '127.0.0.1')
  await once(server.server, 'listening')
  const { port } = server.server.address() as AddressInfo
  return {
    port,
    received,
    rules,
    async [Symbol.asyncDispose]() {
      await new Promise<void>((resolve) => server.close(resolve))
    },
  }
}

export type MailEngine = AsyncDisposable & {
  db: Db
  connectionString: string
  queue: Queue
  worker: MailWorker
  clock: Clock
  tokens: MailTokens
  accountId: string
  domainId: string
  /** The facts about recipients that the worker has reported, in order. */
  facts: RecipientFact[]
  /** How many recipients were said to be sent to again. */
  readonly resent: number
  /** How many destinations cannot be used at present. */
  readonly unusable: number
  /** Stores an email and its job, as the API does. */
  send(email: Partial<SeedEmail> & Pick<SeedEmail, 'to'>, lane?: Lane): Promise<string>
  /** Jumps in time with everything: our clock, the queue's and the database's. */
  advance(seconds: number): Promise<void>
  /** Lets time pass, with every timer of the queue in it. */
  tick(seconds: number): Promise<void>
  /** The statuses of an email and its recipients, once `enough` of them satisfies the test. */
  statusOf(emailId: string, enough: (seen: EmailState) => boolean): Promise<EmailState>
  /**
   * Lets time pass until nothing is left to do for some emails: each time until the next email is due. While one is due,
   * or in the hands of a worker, time stands still, so that a slow machine makes as many attempts as a fast one. Rejects
   * when nothing has moved for `patienceMs`.
   */
  untilDone(emailIds: readonly string[]): Promise<void>
  timelineOf(emailId: string): Promise<{ position: number | null; type: string; detail: string | null }[]>
  /** The types of the events about an email, in order. */
  eventsOf(emailId: string): Promise<string[]>
  /** Ends the worker as SIGTERM would. */
  stopWorker(deadlineMs: number): Promise<void>
  /** Starts a worker anew, as another process would. */
  startWorker(): void
}

export type EmailState = { status: string; recipients: string[]; attempts: number[] }

/** Whether nothing is left to be done for an email. */
export const isDone = ({ status }: Pick<EmailState, 'status'>) => !['queued', 'sending', 'scheduled'].includes(status)

/** As checks of its records would have it. */
export async function setStatus({ db, domainId }: MailEngine, status: 'pending' | 'verified' | 'failed') {
  await db.updateTable('domains').set({ status }).where('id', '=', domainId).execute()
}

/** As the API does. */
export async function deleteDomain({ db, domainId }: MailEngine): Promise<void> {
  await db.deleteFrom('domains').where('id', '=', domainId).execute()
}

export type MailEngineOptions = {
  /** Of the mail server everything goes to, unless `to` says otherwise. */
  port: number
  to?: TransportKind
  concurrency?: number
  connectionsPerHost?: number
  /** As the worker takes them. */
  copyForEach?: boolean
  faultOfLinks?: string
  /** Default 50. */
  pollIntervalMs?: number
}

/** The way of an email from its job to a mail server on loopback, on a database and a clock of its own. */
export async function startMailEngine(options: MailEngineOptions): Promise<MailEngine> {
  const { clock, queueClock, sessionOptions } = createTestTime(start)
  const database = await createTestDatabase({ sessionOptions })
  const { db, connectionString } = database
  const fail = (error: Error) => {
    throw error
  }
  const queue = await startQueue({ connectionString, works: true, onError: fail, clock: queueClock, sessionOptions })
  const box = secretBox(Buffer.alloc(32, 1))
  const accountId = await seedAccount(db, start)
  const domainId = await seedDomain(db, accountId, (key) => sealPrivateKey(box, key))
  const outbox = createOutbox({ clock, wake: () => undefined })
  const key = Buffer.alloc(32, 2)
  const tokens = createMailTokens(key)
  const facts: RecipientFact[] = []
  let resent = 0
  let unusable = 0
  const transports: { close(): Promise<void> }[] = []

  function runWorker(): MailWorker {
    const transport = createTransport({
      config: {
        hostname: 'mail.example.test',
        concurrency: options.concurrency ?? 10,
        connectionsPerHost: options.connectionsPerHost ?? 5,
        messagesPerConnection: 100,
      },
      to: options.to ?? { kind: 'capture', port: () => options.port },
      clock,
      onUnusable: (count) => {
        unusable = count
      },
    })
    transports.push(transport)
    return startMailWorker({
      db,
      queue,
      clock,
      outbox,
      transport,
      tokens,
      composer: createMailComposer({ key, publicUrl: () => 'https://mail.example.test', clock }),
      signers: createSigners({ db, secretBox: box, clock }),
      logger: pino({ level: 'fatal' }),
      concurrency: options.concurrency ?? 10,
      connectionsPerHost: options.connectionsPerHost ?? 5,
      copyForEach: options.copyForEach ?? false,
      faultOfLinks: options.faultOfLinks ?? null,
      pollIntervalMs: options.pollIntervalMs ?? 50,
      random: () => 0.5,
      onFact: (fact) => void facts.push(fact),
      onResent: (count) => {
        resent += count
      },
    })
  }
  let worker = runWorker()

  async function advance(seconds: number): Promise<void> {
    await queueClock.setTime(queueClock.now() + seconds * 1000)
    lanes.forEach(worker.wake)
  }

  return {
    db,
    connectionString,
    queue,
    get worker() {
      return worker
    },
    clock,
    tokens,
    accountId,
    domainId,
    facts,
    get resent() {
      return resent
    },
    get unusable() {
      return unusable
    },
    async send(email, lane = 'single') {
      const at = clock.now()
      const id = await seedEmail(db, { accountId, domainId, at, ...email })
      await inTransaction(db, (trx) =>
        queue.emails.put(trx, [{ emailId: id, accountId, dueAt: email.scheduledAt ?? null, lane }]),
      )
      worker.wake(lane)
      return id
    },
    advance,
    async tick(seconds) {
      await queueClock.tick(seconds * 1000)
      lanes.forEach(worker.wake)
    },
    async statusOf(emailId, enough) {
      const deadline = performance.now() + patienceMs
      for (;;) {
        const seen = await stateOf(db, emailId)
        if (enough(seen)) return seen
        if (performance.now() > deadline) throw new Error(`the email stays at ${JSON.stringify(seen)}`)
        // The worker records the result within milliseconds; the database is polled until then.
        await new Promise((resolve) => setTimeout(resolve, 10))
      }
    },
    async untilDone(emailIds) {
      let [seen, since] = ['', performance.now()]
      for (;;) {
        const emails = await db.selectFrom('emails').select(['id', 'status']).where('id', 'in', emailIds).execute()
        if (emails.length < emailIds.length) throw new Error('some of these emails are not there')
        const left = emails.filter((email) => !isDone(email))
        if (left.length === 0) return
        const seconds = await secondsUntilDue(db)
        const looks = JSON.stringify({ seconds, left })
        if (looks !== seen) [seen, since] = [looks, performance.now()]
        if (performance.now() - since > patienceMs) {
          throw new Error(`nothing moves any more: ${looks}, ${JSON.stringify(await jobsOf(db))}`)
        }
        if (seconds !== null && seconds > 0) await advance(Math.ceil(seconds))
        else await new Promise((resolve) => setTimeout(resolve, 10))
      }
    },
    timelineOf: (emailId) =>
      db
        .selectFrom('email_timeline')
        .select(['position', 'type', 'detail'])
        .where('email_id', '=', emailId)
        .orderBy('id')
        .execute(),
    async eventsOf(emailId) {
      const rows = await db.selectFrom('events').select(['type', 'body']).orderBy('id').execute()
      return rows.filter(({ body }) => body.includes(emailId)).map(({ type }) => type)
    },
    stopWorker: (deadlineMs) => worker.stop(deadlineMs),
    startWorker() {
      worker = runWorker()
    },
    async [Symbol.asyncDispose]() {
      await worker.stop(2_000)
      for (const transport of transports) await transport.close()
      await queue.stop()
      await database.drop()
    },
  }
}

/** In one look, so that what it says is of one moment. */
async function stateOf(db: Db, emailId: string): Promise<EmailState> {
  const rows = await db
    .selectFrom('emails')
    .innerJoin('email_recipients', 'email_recipients.email_id', 'emails.id')
    .select(['emails.status as email', 'email_recipients.status', 'attempt_count'])
    .where('emails.id', '=', emailId)
    .orderBy('position')
    .execute()
  const [first] = rows
  if (first === undefined) throw new Error(`there is no email ${emailId}`)
  return {
    status: first.email,
    recipients: rows.map(({ status }) => status),
    attempts: rows.map(({ attempt_count }) => attempt_count),
  }
}

/** Seconds until the first email that nobody has claimed is due; null: all are claimed. */
async function secondsUntilDue(db: Db): Promise<number | null> {
  const { rows } = await sql<{ seconds: number | null }>`
    SELECT extract(epoch FROM min(start_after) - pgboss.job_now())::float AS seconds
    FROM pgboss.job WHERE name = 'emails' AND state < 'active'
  `.execute(db)
  return rows[0]?.seconds ?? null
}

/** The jobs of emails by state, for people. */
async function jobsOf(db: Db): Promise<readonly unknown[]> {
  const { rows } = await sql`
    SELECT state, priority, retry_count, pgboss.job_now() - start_after AS late, pgboss.job_now() - heartbeat_on AS held
    FROM pgboss.job WHERE name = 'emails'
  `.execute(db)
  return rows
}

async function seedDomain(
  db: Db,
  accountId: string,
  seal: (key: ReturnType<typeof generateKeyPairSync>['privateKey'] & object) => Buffer,
): Promise<string> {
  const id = newId('domain', start)
  await db
    .insertInto('domains')
    .values({
      id,
      account_id: accountId,
      name: 'example.test',
      return_path: 'send.example.test',
      status: 'verified',
      rsa_selector: 'r1',
      rsa_public_key: rsa.publicKey.export({ format: 'der', type: 'spki' }).toString('base64'),
      rsa_private_key: seal(rsa.privateKey),
      ed25519_selector: 'e1',
      ed25519_public_key: 'unused',
      ed25519_private_key: seal(ed25519.privateKey),
      findings: '{}',
      next_check_at: null,
      last_checked_at: null,
      verified_at: start,
    })
    .execute()
  return id
}
