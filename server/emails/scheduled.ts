import type { Email } from '../../contract/email-resource.ts'
import { type Handle, inTransaction, type Trx } from '../database/connection.ts'
import type { Clock } from '../lib/clock.ts'
import type { EmailQueue } from '../queue/email-queue.ts'
import { brokenRule, DomainError, notFound } from '../shared/errors.ts'
import type { Scope } from '../shared/scope.ts'
import { cancelEmail, lockEmail, moveEmail } from './queries.ts'
import { withRecipients } from './reading.ts'
import { faultOfSchedule } from './validate-email.ts'

type Means = { clock: Clock; queue: Pick<EmailQueue, 'put' | 'remove'> }

/** Moves a scheduled email to another time. Throws `email_not_scheduled` once it was started, ended or canceled. */
export function reschedule(
  { clock, queue }: Means,
  handle: Handle,
  scope: Scope,
  { id, to }: { id: string; to: Date },
): Promise<Email> {
  return inTransaction(handle, async (trx) => {
    await lockScheduled(trx, scope, id)
    const at = clock.now()
    const fault = faultOfSchedule(to, at)
    if (fault !== null) throw brokenRule('body.scheduledAt', fault)
    const row = await moveEmail(trx, id, { to, at })
    await queue.remove(trx, [id])
    await queue.put(trx, [{ emailId: id, accountId: scope.accountId, dueAt: to }])
    return withRecipients(trx, row)
  })
}

/** Cancels a scheduled email. Throws `email_not_scheduled` once it was started, ended or canceled. */
export function cancelScheduled({ clock, queue }: Means, handle: Handle, scope: Scope, id: string): Promise<Email> {
  return inTransaction(handle, async (trx) => {
    await lockScheduled(trx, scope, id)
    const row = await cancelEmail(trx, id, clock.now())
    await queue.remove(trx, [id])
    return withRecipients(trx, row)
  })
}

/** Locks a scheduled email, so that no worker starts it until the transaction ends. */
async function lockScheduled(trx: Trx, scope: Scope, id: string): Promise<void> {
  const row = await lockEmail(trx, scope, id)
  if (row === undefined) throw notFound('email', id)
  if (row.status === 'scheduled') return
  throw new DomainError(
    'email_not_scheduled',
    `The email "${id}" is not scheduled but ${row.status}: only what still waits for its time can be moved or canceled.`,
  )
}
