import type { SegmentCondition } from '../../../contract/segment-conditions.ts'
import type { MatchLimits } from '../../../server/audiences/matching-contacts.ts'
import { guardUsedSegment } from '../../../server/campaigns/in-use.ts'
import { createSegmentService } from '../../../server/segments/service.ts'
import { live } from '../scope.ts'
import { insertManyContacts, insertSegmentPeople, type SegmentPerson } from '../segment-people.ts'
import { createWorld } from './audiences.ts'

export type SegmentWorld = Awaited<ReturnType<typeof createSegmentWorld>>

let counter = 0

/** Segments, with audiences to be filled, and an account that has the properties `plan` and `seats`. */
export async function createSegmentWorld() {
  const world = await createWorld()
  const { db, account, clock, properties, audiences } = world
  await properties.create(db, account, { key: 'plan', type: 'string' })
  await properties.create(db, account, { key: 'seats', type: 'number' })
  const segmentsWith = (matchLimits: Partial<MatchLimits>) =>
    createSegmentService({ clock, matchLimits, guardUsed: guardUsedSegment })

  return {
    ...world,
    segments: segmentsWith({}),
    /** A service with other limits of its counts. */
    segmentsWith,
    async newAudience(): Promise<string> {
      return (await audiences.create(db, live(account), { name: `List ${++counter}` })).id
    },
    /** Puts people on a list. Returns their ids. */
    fill(audienceId: string, people: readonly SegmentPerson[]): Promise<string[]> {
      return insertSegmentPeople(db, { accountId: account, audienceId }, people)
    },
    /** Puts many people without anything on a list. Returns their ids, in order. */
    fillMany(audienceId: string, count: number): Promise<string[]> {
      return insertManyContacts(db, { accountId: account, audienceId }, count)
    },
  }
}

/** An active person with an address of their own. */
export function person(values: Partial<SegmentPerson> = {}): SegmentPerson {
  return {
    email: `person-${++counter}@example.com`,
    firstName: null,
    lastName: null,
    subscriberStatus: 'active',
    status: 'active',
    createdAt: new Date(),
    properties: {},
    emails: [],
    ...values,
  }
}

export const ofPlan = (value: string): SegmentCondition => ({
  type: 'property',
  property: 'plan',
  operator: 'is',
  value,
})
