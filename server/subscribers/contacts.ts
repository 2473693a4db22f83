import type { Mode } from '../../contract/mode.ts'
import type { SubscriptionStatus } from '../../contract/subscribers.ts'
import type { Trx } from '../database/connection.ts'
import type { Clock } from '../lib/clock.ts'
import type { NewEvent, Outbox } from '../outbox/append.ts'
import type { ChangedField } from './change.ts'
import { deleteMemberships, lockMemberships, type Membership, updateMemberships } from './queries.ts'

/** Memberships changed, and events appended, at a time. Bounds the memory of one request. */
const chunkSize = 1_000

type Person = { id: string; account_id: string; email: string }

export type MembershipChange = {
  /** Fields of the person that changed. */
  changed: readonly ChangedField[]
  /** Returns the new status of a membership. */
  statusOf: (membership: Membership) => SubscriptionStatus
  /** Id of the only audience to change. Default: all. */
  only?: string | undefined
  /** Mode of the request or email that causes the change. */
  mode: Mode
}

/**
 * Applies a change to the contacts of a person. Emits `contact.updated` for each changed contact, with the names of the
 * changed fields. Skips contacts without a change.
 */
export async function changeMemberships(
  trx: Trx,
  { clock, outbox }: { clock: Clock; outbox: Outbox },
  person: Person,
  { changed, statusOf, only, mode }: MembershipChange,
): Promise<void> {
  for await (const chunk of chunksOf(trx, person, { only, purpose: 'change' })) {
    const updates: Membership[] = []
    const events: NewEvent[] = []
    for (const membership of chunk) {
      const status = statusOf(membership)
      const changes = status === membership.status ? [...changed] : [...changed, 'status' as const]
      if (changes.length === 0) continue
      updates.push({ audience_id: membership.audience_id, status })
      events.push({
        type: 'contact.updated',
        data: { subscriberId: person.id, audienceId: membership.audience_id, email: person.email, changes },
      })
    }
    if (updates.length === 0) continue
    await updateMemberships(trx, person.id, updates, clock.now())
    await outbox.append(trx, { accountId: person.account_id, mode }, events)
  }
}

/**
 * Removes a person from all audiences. Emits `contact.deleted` for each.
 *
 * @param mode Mode of the request that causes it.
 */
export async function removeMemberships(
  trx: Trx,
  { outbox }: { outbox: Outbox },
  person: Person,
  mode: Mode,
): Promise<void> {
  for await (const chunk of chunksOf(trx, person, { purpose: 'delete' })) {
    const audienceIds = chunk.map(({ audience_id }) => audience_id)
    await deleteMemberships(trx, person.id, audienceIds)
    await outbox.append(
      trx,
      { accountId: person.account_id, mode },
      audienceIds.map((audienceId) => ({
        type: 'contact.deleted',
        data: { subscriberId: person.id, audienceId },
      })),
    )
  }
}

/** Locks and yields the memberships of a person, chunk by chunk. */
async function* chunksOf(
  trx: Trx,
  person: Person,
  { only, purpose }: { only?: string | undefined; purpose: 'change' | 'delete' },
): AsyncGenerator<Membership[]> {
  let chunk: Membership[]
  let after = ''
  do {
    chunk = await lockMemberships(trx, person.id, { after, only, limit: chunkSize, purpose })
    if (chunk.length > 0) yield chunk
    after = chunk.at(-1)?.audience_id ?? after
  } while (chunk.length === chunkSize)
}
