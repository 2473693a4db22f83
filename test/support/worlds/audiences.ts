import { createContactService } from '../../../server/audiences/contact-service.ts'
import { createAudienceService } from '../../../server/audiences/service.ts'
import { guardUsedAudience } from '../../../server/campaigns/in-use.ts'
import { createEventService } from '../../../server/events/service.ts'
import type { Clock } from '../../../server/lib/clock.ts'
import { createOutbox } from '../../../server/outbox/append.ts'
import { newId } from '../../../server/shared/ids.ts'
import { createContactPropertyService } from '../../../server/subscribers/property-service.ts'
import { createSubscriberService } from '../../../server/subscribers/service.ts'
import { createTestDatabase } from '../database.ts'
import { noConfirmations } from '../no-confirmations.ts'
import { createEmittedReader } from './emitted.ts'

export type World = Awaited<ReturnType<typeof createWorld>>

/** People, lists and events over a database of their own, with two accounts and a clock that is moved by hand. */
export async function createWorld() {
  const database = await createTestDatabase()
  const { db } = database
  let now = Date.now()
  const clock: Clock = { now: () => new Date(now) }
  const outbox = createOutbox({ clock, wake: () => undefined })

  async function addAccount(name: string): Promise<string> {
    const id = newId('account', clock.now())
    await db.insertInto('accounts').values({ id, name, plan: 'scale' }).execute()
    return id
  }

  return {
    db,
    connectionString: database.connectionString,
    clock,
    outbox,
    moveClock(ms: number): void {
      now += ms
    },
    account: await addAccount('Ours'),
    stranger: await addAccount('Theirs'),
    subscribers: createSubscriberService({ clock, outbox }),
    audiences: createAudienceService({
      clock,
      outbox,
      confirmations: noConfirmations,
      guardUsed: guardUsedAudience,
    }),
    contacts: createContactService({ clock, outbox, confirmations: noConfirmations }),
    properties: createContactPropertyService({ clock }),
    events: createEventService(),
    emitted: createEmittedReader(db),
    end: database.drop,
  }
}

/** The code of the DomainError a promise is refused with. */
export async function refusal(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => 'not refused',
    (error: unknown) => (error instanceof Error && 'code' in error ? error.code : error),
  )
}
