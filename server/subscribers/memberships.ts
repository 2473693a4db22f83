import type { Mode } from '../../contract/mode.ts'
import type { SubscriptionStatus } from '../../contract/subscribers.ts'
import type { Trx } from '../database/connection.ts'
import type { Clock } from '../lib/clock.ts'
import type { NewEvent, Outbox } from '../outbox/append.ts'
import type { ChangedField } from './change.ts'
import { deleteMemberships, lockMemberships, type Membership, updateMemberships } from './queries.ts'

/** Memberships handled, and events appended, at a time: bounds the memory of one request. */
const chunkSize = 1_000

type Person = { id: string; account_id: string; email: string }

export type MembershipChange = {
  /** What changed about the person. */
  changed: readonly ChangedField[]
  /** The status each membership shall have. */
  statusOf: (membership: Membership) => SubscriptionStatus
  /** Just the membership in this audience. Default: all. */
  only?: string | undefined
  /** Of what causes it. */
  mode: Mode
}

/**
 * Carries a change into the audiences of a person: their contacts are written, and `contact.updated`
 * is emitted for each with the names of what changed there. A contact nothing changed for is left alone.
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

/** Takes a person off every audience; emits `contact.deleted` for each. @param mode Of what causes it. */
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

/** Locks the memberships of a person, chunk by chunk. */
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
