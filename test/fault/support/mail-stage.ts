import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { sql } from 'kysely'
import { type ScriptedSmtp, startScriptedSmtp } from '../../support/scripted-smtp.ts'
import { miscounted } from '../../support/statistics.ts'
import { type Load, type LoadOptions, type Operation, startLoad } from './load.ts'
import { type MailTrial, mailVerdict } from './mail-evidence.ts'
import { cutSessions } from './sessions.ts'
import { type Stage, type StageOptions, setStage } from './stage.ts'

/** The service as a process of its own that sends over a scripted mail server, and tells a recorder of it. */
export type MailStage = AsyncDisposable &
  Pick<Stage, 'db' | 'connectionString' | 'recorder' | 'ledger' | 'key' | 'service' | 'restart' | 'startBeside'> & {
    server: ScriptedSmtp
    /** Kills the process at once, and notes whom it was sending to. */
    kill(): Promise<void>
    /** Notes whom a process is sending to that will never tell what came of it. */
    noteLost(): Promise<void>
    /** Sends an email with three recipients. `bytes`: of a file in it. `scheduledAt`: when; default: now. */
    send(options?: { bytes?: number; scheduledAt?: Date }): Promise<void>
    /** Sends emails with three recipients each. Default: four writers who repeat what was not answered. */
    startLoad(options?: Pick<LoadOptions, 'repeats' | 'writers'>): Load
    /** How many emails were stored in a transaction together with others. */
    shared(): Promise<number>
    /** How many recipients the process that runs has counted as sent to again. */
    resent(): Promise<number>
    /** Returns the input for a verdict on all emails. `areLossesKnown`: whether every process was killed by `kill`. */
    trial(options?: { areLossesKnown?: boolean }): MailTrial
    /** Waits for the recovery and answers what was lost or is wrong. See `judgeMail`. */
    verdict(options?: { areLossesKnown?: boolean; patienceMs?: number }): Promise<string[]>
  }

export type MailStageOptions = Pick<StageOptions, 'connectionString' | 'env'> & {
  /** The SMTP extensions of the mail server. Default: those of large mail servers. */
  extensions?: readonly string[]
  /** Whether the mail server is sent to over TLS, by a user with a password. Default: in the clear, by anybody. */
  isGuarded?: boolean
}

const authorityFile = join(import.meta.dirname, '..', '..', 'support', 'tls', 'authority.pem')

const sender = 'sender.test'

/** To whom an email with this mark goes. */
function recipientsOf(mark: string): string[] {
  return [`to.${mark}`, `cc.${mark}`, `bcc.${mark}`]
}

const sendEmail = {
  path: '/v1/emails',
  body: (mark: string) => {
    const [to, cc, bcc] = recipientsOf(mark)
    return { from: `hello@${sender}`, to, cc, bcc, subject: mark, text: 'It is good to have you here.' }
  },
  status: 202,
} satisfies Operation

export async function setMailStage(options: MailStageOptions): Promise<MailStage> {
  const { connectionString, env, extensions, isGuarded = false } = options
  await using starting = new AsyncDisposableStack()
  const server = starting.use(
    await startScriptedSmtp({ ...(extensions && { extensions }), ...(isGuarded && { tls: 'valid' }) }),
  )
  const stage = starting.use(
    await setStage({
      connectionString,
      webhooks: 1,
      events: ['email.sent', 'email.delivered', 'email.delivery_delayed', 'email.bounced', 'email.failed'],
      env: {
        MAIL_TRANSPORT: 'relay',
        SMTP_URL: `smtp://${isGuarded ? 'me:secret@' : ''}127.0.0.1:${server.port}`,
        ...(isGuarded && { NODE_EXTRA_CA_CERTS: authorityFile }),
        MAIL_DNS_SERVERS: '127.0.0.1:9',
        ...env,
      },
    }),
  )
  const { db, ledger, key, recorder } = stage
  await post('/v1/domains', { name: sender }, 201)
  // As if its records had been found.
  await db.updateTable('domains').set({ status: 'verified', verified_at: new Date(), next_check_at: null }).execute()
  /** By address, the attempts whose outcome no process knows any more. */
  const lost = new Map<string, Set<number>>()

  async function post(path: string, body: unknown, status: number): Promise<void> {
    const response = await fetch(`${stage.service.url}${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    if (response.status !== status) throw new Error(`${path} was answered ${await response.text()}`)
    await response.arrayBuffer()
  }

  async function noteLost(): Promise<void> {
    const rows = await db
      .selectFrom('email_recipients')
      .select(['address', 'attempt_count'])
      .where('status', '=', 'sending')
      .execute()
    for (const { address, attempt_count } of rows) {
      lost.set(address, (lost.get(address) ?? new Set()).add(attempt_count))
    }
  }

  function trial({ areLossesKnown = true } = {}): MailTrial {
    const losses = areLossesKnown ? (address: string) => lost.get(address)?.size ?? 0 : null
    return { db, ledger, recipientsOf, recorder, messages: server.messages, lost: losses }
  }

  const running = starting.move()
  return {
    db,
    connectionString,
    recorder,
    ledger,
    key,
    server,
    get service() {
      return stage.service
    },
    restart: stage.restart,
    startBeside: stage.startBeside,
    async kill() {
      await stage.kill()
      // When its sessions have ended, each of its statements is either committed or not.
      while ((await cutSessions(db)) > 0) await delay(10)
      await noteLost()
    },
    noteLost,
    async send({ bytes = 0, scheduledAt } = {}) {
      const mark = `${randomUUID()}@example.com`
      ledger.begin(mark)
      const attachments = [{ filename: 'a.bin', content: Buffer.alloc(bytes, 1).toString('base64') }]
      const email = { ...sendEmail.body(mark), ...(bytes > 0 && { attachments }), ...(scheduledAt && { scheduledAt }) }
      await post(sendEmail.path, email, sendEmail.status)
      ledger.acknowledge(mark)
    },
    startLoad: (load) => startLoad({ ledger, url: () => stage.service.url, key, operation: sendEmail, ...load }),
    async shared() {
      // Contents are written once and never changed, so that they tell of the transaction that stored them.
      const { rows } = await sql<{ count: string }>`
        SELECT count(*) FROM (SELECT count(*) OVER (PARTITION BY xmin::text) AS together FROM email_contents) AS c
        WHERE together > 1
      `.execute(db)
      return Number(rows[0]?.count)
    },
    async resent() {
      const page = await (await fetch(`${stage.service.url}/metrics`)).text()
      return Number(/^postern_email_recipients_resent_total (\d+)$/m.exec(page)?.[1] ?? Number.NaN)
    },
    trial,
    async verdict({ areLossesKnown = true, patienceMs } = {}) {
      return [...(await mailVerdict(trial({ areLossesKnown }), patienceMs)), ...(await miscounted(db))]
    },
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  }
}
