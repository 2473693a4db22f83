import type { Contact } from '../../contract/contacts.ts'
import type { Page, PageQuery } from '../../contract/pagination.ts'
import type {
  CreateSegment,
  PreviewSegment,
  Segment,
  SegmentCount,
  SegmentListQuery,
  SegmentPreview,
  UpdateSegment,
} from '../../contract/segments.ts'
import { createContactMatching, type MatchLimits } from '../audiences/matching-contacts.ts'
import { holdAudience, isAudience } from '../audiences/presence.ts'
import { record } from '../audit-log/record.ts'
import { type Handle, inTransaction, type Trx } from '../database/connection.ts'
import type { Clock } from '../lib/clock.ts'
import { DomainError, notFound } from '../shared/errors.ts'
import { newId } from '../shared/ids.ts'
import { decodeCursor, pageOfRows } from '../shared/pagination.ts'
import type { AuthoredScope, Scope } from '../shared/scope.ts'
import { findProperties } from '../subscribers/properties.ts'
import { isOfStatusAlone } from './compile.ts'
import {
  deleteSegment,
  findSegment,
  insertSegment,
  lockSegment,
  type SegmentRow,
  selectSegments,
  updateSegment,
} from './queries.ts'
import { givenCondition, storedCondition } from './segment-conditions.ts'

/** People that a preview shows. */
const previewSize = 10

/** Use cases for segments, which both modes share. Throws DomainErrors. Every call is limited to one account. */
export type SegmentService = {
  /**
   * Stores a segment. Throws `rule_violation` for conditions that the properties of the account do not allow, and
   * `audience_not_found`.
   */
  create(handle: Handle, accountId: string, segment: CreateSegment): Promise<Segment>
  /** Returns segments, newest first. */
  list(handle: Handle, accountId: string, query: SegmentListQuery): Promise<Page<Segment>>
  get(handle: Handle, accountId: string, id: string): Promise<Segment>
  /** Changes a segment. Throws `rule_violation` as `create`. */
  update(handle: Handle, accountId: string, id: string, patch: UpdateSegment): Promise<Segment>
  /** Deletes a segment. Throws `conflict` while campaigns to it are scheduled, sending or paused. */
  delete(handle: Handle, scope: AuthoredScope, id: string): Promise<void>
  /** Counts the people of a segment: see `ContactMatching`. Throws `segment_invalid`. */
  count(handle: Handle, accountId: string, id: string): Promise<SegmentCount>
  /** Returns the people of a segment, newest subscribers first: see `ContactMatching`. Throws `segment_invalid`. */
  contacts(handle: Handle, accountId: string, id: string, query: PageQuery): Promise<Page<Contact>>
  /** Returns the people of a segment as CSV: see `exportContacts`. Throws `segment_invalid`. */
  exportCsv(handle: Handle, accountId: string, id: string): Promise<AsyncGenerator<string>>
  /** Counts and shows people for conditions that are not stored. Throws what `create` throws. */
  preview(handle: Handle, accountId: string, preview: PreviewSegment): Promise<SegmentPreview>
}

type Dependencies = {
  clock: Clock
  /** Throws when something else needs a segment that is locked to be deleted. */
  guardUsed: (trx: Trx, scope: Scope, segmentId: string) => Promise<void>
  /** For tests. Default: those of `createContactMatching`. */
  matchLimits?: Partial<MatchLimits>
}

export function createSegmentService({ clock, guardUsed, matchLimits }: Dependencies): SegmentService {
  const matching = createContactMatching(matchLimits)

  async function segmentOf(handle: Handle, accountId: string, id: string): Promise<SegmentRow> {
    const segment = await findSegment(handle, accountId, id)
    if (segment === undefined) throw notFound('segment', id)
    return segment
  }

  /** Returns whom to look for: the audience of a segment and its condition now. */
  async function matchOf(handle: Handle, accountId: string, id: string) {
    const segment = await segmentOf(handle, accountId, id)
    const condition = await storedCondition(handle, accountId, { segment, at: clock.now() })
    return {
      accountId,
      audienceId: segment.audience_id,
      condition,
      isOfStatusAlone: isOfStatusAlone(segment.conditions),
    }
  }

  return {
    async create(handle, accountId, { audienceId, name, conditions }) {
      return inTransaction(handle, async (trx) => {
        const at = clock.now()
        if (!(await holdAudience(trx, accountId, audienceId))) throw noAudience(audienceId)
        await givenCondition(trx, accountId, { conditions, at })
        const id = newId('segment', at)
        return toSegment(await insertSegment(trx, { id, accountId, audienceId, name, conditions, at }))
      })
    },
    async list(handle, accountId, { audienceId, limit, cursor }) {
      const page = { audienceId, after: decodeCursor('segment', cursor), limit: limit + 1 }
      const rows = await selectSegments(handle, accountId, page)
      return pageOfRows(rows, { limit, idOf: (row) => row.id, toItem: toSegment })
    },
    async get(handle, accountId, id) {
      return toSegment(await segmentOf(handle, accountId, id))
    },
    async update(handle, accountId, id, patch) {
      return inTransaction(handle, async (trx) => {
        const before = await lockSegment(trx, accountId, id)
        if (before === undefined) throw notFound('segment', id)
        const { name = before.name, conditions } = patch
        const at = clock.now()
        if (conditions !== undefined) await givenCondition(trx, accountId, { conditions, at })
        else if (name === before.name) return toSegment(before)
        const changed = { id, name, conditions: conditions ?? before.conditions, at }
        return toSegment(await updateSegment(trx, accountId, changed))
      })
    },
    async delete(handle, scope, id) {
      await inTransaction(handle, async (trx) => {
        const { accountId, author } = scope
        const segment = await lockSegment(trx, accountId, id, 'delete')
        if (segment === undefined) throw notFound('segment', id)
        await guardUsed(trx, scope, id)
        await deleteSegment(trx, accountId, id)
        const target = { type: 'segment', id, name: segment.name } as const
        await record(trx, { accountId, at: clock.now(), author, action: 'segment.deleted', target })
      })
    },
    async count(handle, accountId, id) {
      return matching.count(handle, await matchOf(handle, accountId, id))
    },
    async contacts(handle, accountId, id, query) {
      return matching.list(handle, { ...(await matchOf(handle, accountId, id)), ...query })
    },
    async exportCsv(handle, accountId, id) {
      const match = await matchOf(handle, accountId, id)
      return matching.exportCsv(handle, { ...match, declared: await findProperties(handle, accountId) })
    },
    async preview(handle, accountId, { audienceId, conditions }) {
      const condition = await givenCondition(handle, accountId, { conditions, at: clock.now() })
      const match = { accountId, audienceId, condition, isOfStatusAlone: isOfStatusAlone(conditions) }
      if (!(await isAudience(handle, accountId, audienceId))) throw noAudience(audienceId)
      const counted = await matching.count(handle, match)
      const { data } = await matching.list(handle, { ...match, limit: previewSize })
      return { ...counted, contacts: data }
    },
  }
}

function noAudience(id: string): DomainError {
  return new DomainError('audience_not_found', `There is no audience with the id "${id}" in this account.`)
}

function toSegment(row: SegmentRow): Segment {
  return {
    id: row.id,
    audienceId: row.audience_id,
    name: row.name,
    conditions: row.conditions,
    createdAt: row.created_at.toISOString(),
    updatedAt: row.updated_at.toISOString(),
  }
}
