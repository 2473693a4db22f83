import type { Handle } from '../database/connection.ts'
import { findTemplate, selectPublished, selectPublishedSubjects, type VersionRow } from './queries.ts'

/*
 * Published templates, for rooms that copy them.
 */

/** A version of a template. It never changes. */
export type PublishedTemplate = Pick<VersionRow, 'version' | 'subject' | 'preheader' | 'html' | 'text' | 'variables'>

/** Returns the published version of a template, or why there is none. */
export async function findPublished(
  handle: Handle,
  accountId: string,
  id: string,
): Promise<PublishedTemplate | 'unknown' | 'unpublished'> {
  const [version] = await selectPublished(handle, accountId, [id])
  if (version !== undefined) return version
  return (await findTemplate(handle, accountId, id)) === undefined ? 'unknown' : 'unpublished'
}

/** Returns the subjects of the published versions of templates by the id of the template. */
export async function subjectsOfPublished(
  handle: Handle,
  accountId: string,
  ids: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  if (ids.length === 0) return new Map()
  const rows = await selectPublishedSubjects(handle, accountId, ids)
  return new Map(rows.map(({ template_id: id, subject }) => [id, subject]))
}
