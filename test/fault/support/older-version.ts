import { execFile, spawnSync } from 'node:child_process'
import { mkdtemp, rm, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { sql } from 'kysely'
import { type Db, inTransaction } from '../../../server/database/connection.ts'
import { priorityOfRetry, priorityOfTurn, secondOf } from '../../../server/queue/priority-ranges.ts'
import { newId, uuidOf } from '../../../server/shared/ids.ts'
import { scratchDirectory } from '../../support/scratch.ts'

/** The last commit whose deliveries wait in lanes. */
const commit = '64d19cab634a99ec0ef57b61122179ef93e976be'
const root = join(import.meta.dirname, '..', '..', '..')
const run = promisify(execFile)

/** Why the version before flows cannot be had here. Null: it can. */
export function whyNoOlderVersion(): string | null {
  const { status } = spawnSync('git', ['-C', root, 'cat-file', '-e', `${commit}^{commit}`])
  return status === 0
    ? null
    : `the history has no commit ${commit.slice(0, 7)}: fetch all of it, with git fetch --unshallow`
}

/** Takes its sources out of the history. They run with the packages of today. */
export async function unpackOlderVersion(): Promise<AsyncDisposable & { directory: string }> {
  const directory = await mkdtemp(join(scratchDirectory(), 'postern-older-'))
  const tar = join(directory, 'sources.tar')
  const parts = ['package.json', 'contract', 'openapi', 'server']
  await run('git', ['-C', root, 'archive', '--format=tar', '-o', tar, commit, ...parts])
  await run('tar', ['-xf', tar, '-C', directory])
  await symlink(join(root, 'node_modules'), join(directory, 'node_modules'))
  return { directory, [Symbol.asyncDispose]: () => rm(directory, { recursive: true, force: true }) }
}

export type OldBacklog = {
  webhook: { id: string; account_id: string; lane: number; slow: boolean }
  count: number
  /** When each is due again, after one failed attempt. Null: they are fresh. */
  dueAt: Date | null
}

const chunkSize = 5_000
/** As that version spread what is fresh. */
const turnsPerSecond = 64

/** Writes deliveries that wait, with jobs as that version left them. */
export async function writeOldBacklog(db: Db, { webhook, count, dueAt }: OldBacklog): Promise<void> {
  const first = new Date(Date.now() - 3_600_000)
  const attempts = dueAt === null ? 0 : 1
  for (let from = 0; from < count; from += chunkSize) {
    const rows = Array.from({ length: Math.min(chunkSize, count - from) }, (_, index) => ({
      id: newId('delivery', first),
      eventId: newId('event', first),
      priority: priorityIn(webhook, dueAt, secondOf(first) + Math.floor((from + index) / turnsPerSecond)),
    }))
    const ids = rows.map(({ id }) => id)
    const eventIds = rows.map(({ eventId }) => eventId)
    await inTransaction(db, async (trx) => {
      await sql`
        INSERT INTO events (id, account_id, type, body, created_at)
        SELECT id, ${webhook.account_id}, 'contact.deleted', json_build_object('id', id)::text, ${first}
        FROM unnest(${eventIds}::text[]) AS e (id)
      `.execute(trx)
      await sql`
        INSERT INTO deliveries (id, account_id, webhook_id, event_id, event_type, attempt_count, schedule_position,
          next_attempt_at, created_at)
        SELECT id, ${webhook.account_id}, ${webhook.id}, event_id, 'contact.deleted', ${attempts}, ${attempts},
          ${dueAt ?? first}, ${first}
        FROM unnest(${ids}::text[], ${eventIds}::text[]) AS d (id, event_id)
      `.execute(trx)
      await sql`
        INSERT INTO pgboss.job (id, name, priority, start_after, created_on, keep_until, expire_seconds,
          deletion_seconds, retry_limit, retry_delay, retry_backoff, retry_delay_max, policy, dead_letter,
          heartbeat_seconds)
        SELECT j.id, q.name, j.priority, ${dueAt ?? first}, ${first}, ${first}::timestamptz + interval '1 year',
          q.expire_seconds, q.deletion_seconds, q.retry_limit, q.retry_delay, q.retry_backoff, q.retry_delay_max,
          q.policy, q.dead_letter, q.heartbeat_seconds
        FROM pgboss.queue q, unnest(${ids.map(uuidOf)}::uuid[], ${rows.map(({ priority }) => priority)}::int[])
          AS j (id, priority)
        WHERE q.name = 'deliveries'
      `.execute(trx)
    })
  }
}

function priorityIn({ slow, lane }: OldBacklog['webhook'], dueAt: Date | null, turn: number): number {
  if (slow) return -lane
  return dueAt === null ? priorityOfTurn(turn) : priorityOfRetry(dueAt)
}
