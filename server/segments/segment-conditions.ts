import { type RawBuilder, sql } from 'kysely'
import type { SegmentCondition } from '../../contract/segment-conditions.ts'
import type { Handle, Trx } from '../database/connection.ts'
import { brokenRules, DomainError, type ErrorDetail } from '../shared/errors.ts'
import { findProperties } from '../subscribers/properties.ts'
import { topicDefaults } from '../topics/choices.ts'
import { type CompileOptions, compileCondition } from './compile.ts'
import { conditionFaults, type Named } from './condition-faults.ts'
import { findSegmentsOf, holdSegmentsOf, type SegmentRow } from './queries.ts'

/*
 * Conditions made ready for SQL, with the properties and topics that the account has at that moment.
 */

/** Returns those of `ids` that are no segments of an audience, in order. */
export async function missingSegments(
  handle: Handle,
  accountId: string,
  { audienceId, ids }: { audienceId: string; ids: readonly string[] },
): Promise<string[]> {
  const found = new Set((await findSegmentsOf(handle, accountId, { audienceId, ids })).map(({ id }) => id))
  return ids.filter((id) => !found.has(id))
}

/** Like `missingSegments`. Locks the others, so that none is deleted before the transaction ends. */
export async function holdSegments(
  trx: Trx,
  accountId: string,
  { audienceId, ids }: { audienceId: string; ids: readonly string[] },
): Promise<string[]> {
  const found = await holdSegmentsOf(trx, accountId, { audienceId, ids })
  return ids.filter((id) => !found.has(id))
}

/**
 * Returns a condition that holds for the people of at least one of some segments of an audience, over the aliases `c`
 * (`contacts`) and `s` (their row of `subscribers`). It is true or false, never null, and does not look at the audience:
 * the statement does. Conditions such as "in the last 30 days" count back from `at`. Throws
 * `segment_invalid` when one is not there or of another audience, or names a property or a topic that is not there
 * any more.
 *
 * @param options.ids At least one.
 * @param options.at Default: now.
 */
export async function segmentConditions(
  handle: Handle,
  accountId: string,
  { audienceId, ids, at = new Date() }: { audienceId: string; ids: readonly string[]; at?: Date },
): Promise<RawBuilder<boolean>> {
  return conditionOfSegments(handle, accountId, {
    segments: await segmentsOf(handle, accountId, { audienceId, ids }),
    at,
  })
}

/** A segment, or what it was. */
export type NamedConditions = Pick<SegmentRow, 'id' | 'name' | 'conditions'>

/** Returns segments of an audience. Throws `segment_invalid` when one is not there or of another audience. */
export async function segmentsOf(
  handle: Handle,
  accountId: string,
  { audienceId, ids: given }: { audienceId: string; ids: readonly string[] },
): Promise<NamedConditions[]> {
  const ids = [...new Set(given)]
  const found = await findSegmentsOf(handle, accountId, { audienceId, ids })
  const missing = ids.find((id) => !found.some((segment) => segment.id === id))
  if (missing !== undefined) {
    const message = `There is no segment with the id "${missing}" in the audience "${audienceId}".`
    throw new DomainError('segment_invalid', message)
  }
  return found.map(({ id, name, conditions }) => ({ id, name, conditions }))
}

/** Like `segmentConditions`, of segments that were read before. */
export async function conditionOfSegments(
  handle: Handle,
  accountId: string,
  { segments, at }: { segments: readonly NamedConditions[]; at: Date },
): Promise<RawBuilder<boolean>> {
  if (segments.length === 0) throw new RangeError('at least one segment is needed')
  const options = { accountId, at, ...(await namedBy(handle, accountId)) }
  const parts = segments.map((segment) => compileStored(segment, options))
  return sql`(${sql.join(parts, sql` OR `)})`
}

/** Returns the condition of one stored segment. Throws `segment_invalid`. */
export async function storedCondition(
  handle: Handle,
  accountId: string,
  { segment, at }: { segment: SegmentRow; at: Date },
): Promise<RawBuilder<boolean>> {
  return compileStored(segment, { accountId, at, ...(await namedBy(handle, accountId)) })
}

/** Returns the condition for conditions of a request. Throws `rule_violation` that names each fault. */
export async function givenCondition(
  handle: Handle,
  accountId: string,
  { conditions, at }: { conditions: SegmentCondition; at: Date },
): Promise<RawBuilder<boolean>> {
  const named = await namedBy(handle, accountId)
  const faults = conditionFaults(conditions, named, 'body.conditions')
  if (faults.length > 0) throw brokenRules(faults)
  return compileCondition(conditions, { accountId, at, ...named })
}

function compileStored({ id, name, conditions }: NamedConditions, options: CompileOptions): RawBuilder<boolean> {
  const details = conditionFaults(conditions, options, 'conditions')
  if (details.length > 0) throw invalidSegment({ id, name, details })
  return compileCondition(conditions, options)
}

function invalidSegment({ id, name, details }: { id: string; name: string; details: ErrorDetail[] }): DomainError {
  const [first] = details
  return new DomainError(
    'segment_invalid',
    `The segment "${name}" (${id}) cannot be used: ${first?.path}: ${first?.message}. Change its conditions.`,
    { details },
  )
}

/** One after the other, since a transaction has one connection. */
async function namedBy(handle: Handle, accountId: string): Promise<Named> {
  const declared = await findProperties(handle, accountId)
  const topics = await topicDefaults(handle, accountId)
  return { types: new Map(declared.map(({ key, type }) => [key, type])), topics }
}
