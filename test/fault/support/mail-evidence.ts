import { setTimeout as delay } from 'node:timers/promises'
import { sql } from 'kysely'
import { z } from 'zod'
import type { Db } from '../../../server/database/connection.ts'
import { uuidOf } from '../../../server/shared/ids.ts'
import type { ScriptedMessage } from '../../support/scripted-smtp-session.ts'
import { isDone } from './evidence.ts'
import type { Ledger } from './ledger.ts'
import { judgeMail, type MailEvidence } from './mail-verdict.ts'
import type { Recorder } from './recorder.ts'

const pollMs = 50
const aboutRecipient = z.object({ data: z.object({ to: z.string() }) })

export type MailTrial = {
  /** A look at the database that no fault cuts for long. */
  db: Db
  ledger: Ledger
  recipientsOf: (mark: string) => readonly string[]
  recorder: Recorder
  messages: readonly ScriptedMessage[]
  /** How often a process died while it was sending to an address; null: that cannot be known. */
  lost: ((address: string) => number) | null
  /** How often the mail server refused an address for now. Default: never. */
  refused?: (address: string) => number
  /** Whether an address is of a campaign that may have been paused. Default: none is. */
  wasPaused?: (address: string) => boolean
}

/**
 * Waits until nothing is left to send and to tell of, `patienceMs` at most, and then answers what is wrong:
 * nothing, when nothing was lost. What is stuck for that long is among it.
 */
export async function mailVerdict(trial: MailTrial, patienceMs = 60_000): Promise<string[]> {
  return judgeMail(await mailEvidence(trial, patienceMs))
}

/** Waits as `mailVerdict` does, and answers what is known then. */
export async function mailEvidence(trial: MailTrial, patienceMs = 60_000): Promise<MailEvidence> {
  const deadline = performance.now() + patienceMs
  while (!(await isSent(trial.db)) && performance.now() < deadline) await delay(pollMs)
  return gather(trial)
}

async function isSent(db: Db): Promise<boolean> {
  const { rows } = await sql<{ left: boolean }>`
    SELECT EXISTS (SELECT FROM emails WHERE status IN ('scheduled', 'queued', 'sending')) AS left
  `.execute(db)
  // The events about the emails are delivered after the emails.
  return rows[0]?.left === false && isDone(db)
}

async function gather(trial: MailTrial): Promise<MailEvidence> {
  const { db, ledger, recipientsOf, recorder, messages } = trial
  const events = await db.selectFrom('events').select(['id', 'type', 'body']).where('type', 'like', 'email.%').execute()
  return {
    ledger,
    recipientsOf,
    ...(await emailsOf(trial)),
    events: events.map(({ id, type, body }) => ({ id, type, to: aboutRecipient.parse(JSON.parse(body)).data.to })),
    arrivals: recorder.arrivals,
    copies: messages.map(({ data, recipients }) => ({
      messageId: /^Message-ID: (.+)$/im.exec(data.toString('latin1', 0, 4_096))?.[1] ?? 'nothing',
      recipients: recipients.map(({ address }) => address),
    })),
  }
}

/** Returns the SQL for how many entries of a type the history of a recipient has. */
const entriesOf = (type: string) => sql<number>`(count(*) FILTER (WHERE t.type = ${type}))::int`

type Gathered = Pick<MailEvidence, 'emails' | 'recipients'>

async function emailsOf({ db, lost, refused, wasPaused }: MailTrial): Promise<Gathered> {
  // One transaction, one moment: between two an email could be finished.
  return db
    .transaction()
    .setIsolationLevel('repeatable read')
    .execute(async (trx) => {
      const emails = await trx
        .selectFrom('emails')
        .select(['id', 'subject as mark', 'status', 'message_id as messageId'])
        .execute()
      const recipients = await trx
        .selectFrom('email_recipients as r')
        .innerJoin('emails as e', 'e.id', 'r.email_id')
        .leftJoin('email_timeline as t', (join) =>
          join.onRef('t.email_id', '=', 'r.email_id').onRef('t.position', '=', 'r.position'),
        )
        .select([
          'e.subject as mark',
          'r.address',
          'r.status',
          entriesOf('resent').as('resent'),
          entriesOf('deferred').as('deferred'),
          entriesOf('unknown').as('unknown'),
        ])
        .groupBy(['e.subject', 'r.email_id', 'r.position', 'r.address', 'r.status'])
        .execute()
      const jobs = await sql<{ id: string }>`
        SELECT id FROM pgboss.job WHERE name = 'emails' AND state <= 'active'
      `.execute(trx)
      const queued = new Set(jobs.rows.map((job) => job.id))
      return {
        emails: emails.map(({ id, ...email }) => ({ ...email, hasJob: queued.has(uuidOf(id)) })),
        recipients: recipients.map((recipient) => ({
          ...recipient,
          lost: lost?.(recipient.address) ?? null,
          refused: refused?.(recipient.address) ?? 0,
          wasPaused: wasPaused?.(recipient.address) ?? false,
        })),
      }
    })
}
