import { type Db, inTransaction, type Trx } from '../../database/connection.ts'
import type { PollingPosition } from '../../outbox/positions.ts'
import type { Queue, TaskData } from '../../queue/queue.ts'
import { newId } from '../../shared/ids.ts'
import { findWebhookTarget, type WebhookTarget } from '../webhook-targets.ts'
import {
  awaitFanOuts,
  knownSince,
  lastPositionOf,
  nextEvents,
  type PageOfEvents,
  type RetentionMeans,
  recoverableOf,
} from './recoverable.ts'
import {
  endCanceled,
  findRecovery,
  findRunning,
  insertDeliveries,
  insertRecovery,
  keepEvents,
  type RecoveryRow,
  recordProgress,
  setLastPosition,
  startNewRuns,
} from './recovery-rows.ts'

/** Batches handled before other recoveries get their turn. */
const batchesPerTask = 10

export type RecoverMeans = RetentionMeans & {
  db: Db
  queue: Queue
  /** Called after deliveries of a flow became due. */
  wake: (flow: number) => void
}

/**
 * Continues a recovery for some batches, each in a transaction of its own, and queues the next task. Safe to repeat
 * after a crash, and to run twice at once: a batch is committed together with the position it has reached. Ends when
 * the webhook is disabled or deleted.
 */
export async function continueRecovery(means: RecoverMeans, data: TaskData<'recovery'>): Promise<void> {
  const { db } = means
  const begun = await findTask(db, data)
  if (begun?.last_position === null) {
    await awaitFanOuts(db, data.accountId)
    await setLastPosition(db, data, await lastPositionOf(db, data.accountId))
  }
  for (let batch = 1; batch <= batchesPerTask; batch++) {
    const recovery = await findTask(db, data)
    if (recovery === undefined) return
    const page = await nextEvents(db, spanOf(recovery, means), placeOf(recovery))
    const one = { recovery, page, isLastBatch: batch === batchesPerTask }
    const flow = await inTransaction(db, (trx) => recoverPage(trx, means, one))
    if (flow !== null) means.wake(flow)
  }
}

/** Returns the recovery of a task. Undefined: it has ended, or another task has continued it. */
async function findTask(db: Db, data: TaskData<'recovery'>): Promise<RecoveryRow | undefined> {
  const recovery = await findRecovery(db, data)
  return recovery?.status === 'running' && recovery.task === data.task ? recovery : undefined
}

/**
 * Starts a recovery that a process of the previous version was asked for. Throws while another recovery of the webhook
 * runs.
 */
export async function takeOverRecovery(
  { db, queue, clock }: Pick<RecoverMeans, 'db' | 'queue' | 'clock'>,
  { webhookId, since, until }: TaskData<'recover'>,
): Promise<void> {
  await inTransaction(db, async (trx) => {
    const webhook = await trx
      .selectFrom('webhooks')
      .select(['account_id', 'status'])
      .where('id', '=', webhookId)
      .forNoKeyUpdate()
      .executeTakeFirst()
    if (webhook === undefined || webhook.status === 'disabled') return
    const accountId = webhook.account_id
    if ((await findRunning(trx, { accountId, webhookId })) !== undefined) {
      throw new Error(`cannot start a recovery of ${webhookId} yet: another one is running`)
    }
    await startRecovery(
      trx,
      queue,
      {
        account_id: accountId,
        webhook_id: webhookId,
        since: new Date(since),
        until: new Date(until),
        types: null,
        found: 0,
        found_all: false,
      },
      clock.now(),
    )
  })
}

/** Inserts a recovery and the job of its first task. The caller has locked the webhook. */
export async function startRecovery(
  trx: Trx,
  queue: Queue,
  values: Parameters<typeof insertRecovery>[1],
  at: Date,
): Promise<RecoveryRow> {
  const recovery = await insertRecovery(trx, values, at)
  await queue.addTask(trx, {
    name: 'recovery',
    data: { accountId: recovery.account_id, recoveryId: recovery.id, task: 0 },
  })
  return recovery
}

function spanOf({ account_id: accountId, since, until, types, last_position }: RecoveryRow, means: RetentionMeans) {
  return { accountId, since: knownSince(since, means), until, types, lastPosition: Number(last_position) }
}

function placeOf({ at_position, at_id }: RecoveryRow): PollingPosition {
  return { position: Number(at_position), id: at_id }
}

type Batch = { recovery: RecoveryRow; page: PageOfEvents; isLastBatch: boolean }

/**
 * Sends the events of a page that need it, and records the progress. Returns the flow of the webhook. Null: the
 * recovery has ended, or another task has handled this page.
 */
async function recoverPage(
  trx: Trx,
  means: RecoverMeans,
  { recovery, page, isLastBatch }: Batch,
): Promise<number | null> {
  const { account_id: accountId, id: recoveryId, webhook_id: webhookId } = recovery
  // Webhooks are locked first: see lock-order.ts.
  const webhook = await findWebhookTarget(trx, { scope: { accountId, mode: 'both' }, webhookId, lock: 'share' })
  const current = await findRecovery(trx, { accountId, recoveryId }, { lock: true })
  if (current?.status !== 'running' || !isSamePlace(placeOf(current), placeOf(recovery))) return null
  // Processes of the previous version disable a webhook without ending its recovery.
  if (webhook?.status !== 'enabled') {
    await endCanceled(trx, current)
    return null
  }
  const made = await send(trx, means, { recovery, webhook, events: page.events })
  const needsTask = isLastBatch && !page.isLast
  const task = needsTask ? current.task + 1 : current.task
  await recordProgress(trx, current, { place: page.place, isLast: page.isLast, made, task })
  if (needsTask) await means.queue.addTask(trx, { name: 'recovery', data: { accountId, recoveryId, task } })
  return webhook.flow
}

function isSamePlace(a: PollingPosition, b: PollingPosition): boolean {
  return a.position === b.position && a.id === b.id
}

type Sending = { recovery: RecoveryRow; webhook: WebhookTarget; events: PageOfEvents['events'] }

/** Returns the number of deliveries that were created or restarted. */
async function send(trx: Trx, { queue, clock }: RecoverMeans, { recovery, webhook, events }: Sending): Promise<number> {
  const { undelivered, deliveryIds } = await recoverableOf(trx, webhook, events)
  const kept = await keepEvents(
    trx,
    undelivered.map(({ id }) => id),
  )
  const at = clock.now()
  const made = undelivered
    .filter(({ id }) => kept.has(id))
    .map(({ id, type }) => ({ id: newId('delivery', at), eventId: id, eventType: type }))
  await insertDeliveries(trx, recovery, made, at)
  const restarted = await startNewRuns(trx, deliveryIds)
  // None of them should have a job. If one was left behind, it must not stop the recovery.
  await queue.remove(trx, restarted)
  const due = [...restarted, ...made.map(({ id }) => id)]
  await queue.flows.put(
    trx,
    due.map((deliveryId) => ({ deliveryId, flow: webhook.flow, dueAt: null })),
  )
  return due.length
}
