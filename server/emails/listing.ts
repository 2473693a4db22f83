import type { Email } from '../../contract/email-resource.ts'
import type { EmailListQuery } from '../../contract/emails.ts'
import type { Page } from '../../contract/pagination.ts'
import type { Handle } from '../database/connection.ts'
import { addressKey } from '../message/address.ts'
import { readAddress } from '../message/mailbox.ts'
import { brokenRule } from '../shared/errors.ts'
import { firstIdAt, idAboveThoseBefore } from '../shared/ids.ts'
import { decodeCursor, encodeCursor, pageOfRows } from '../shared/pagination.ts'
import type { Scope } from '../shared/scope.ts'
import { type IndexedFilters, isFew, selectOfRarest } from './filter-queries.ts'
import { pairsOf } from './metadata.ts'
import { hasAllTags } from './older-emails.ts'
import { selectEmails, selectRecipients } from './queries.ts'
import { type Candidates, type IdRange, lookedThrough, selectFitting, selectNewest } from './search-queries.ts'
import { readSearch } from './search-text.ts'
import { toEmail } from './to-response.ts'

/**
 * Returns a page of emails, newest first. A page with a filter can have fewer emails than `limit` without being the
 * last: each looks at a bounded number of emails.
 *
 * Throws `rule_violation` for a search without a visible character.
 */
export async function listEmails(handle: Handle, scope: Scope, query: EmailListQuery): Promise<Page<Email>> {
  const { recipient, limit, mode = scope.mode } = query
  const before = decodeCursor('email', query.cursor)
  const recipientKey = recipient === undefined ? undefined : addressKey(readAddress(recipient, 'query.recipient'))
  if (mode !== scope.mode) return { data: [], nextCursor: null }
  const looked = await lookAt(handle, scope, { query, recipientKey, range: rangeOf(query, before) })
  const rows = await selectEmails(handle, scope, {
    query,
    recipientKey,
    before,
    among: looked?.ids,
    limit: limit + 1,
  })
  const recipients = await selectRecipients(
    handle,
    rows.map(({ id }) => id),
  )
  const byEmail = Map.groupBy(recipients, (row) => row.email_id)
  const page = pageOfRows(rows, {
    limit,
    idOf: (row) => row.id,
    toItem: (row) => toEmail(row, byEmail.get(row.id) ?? []),
  })
  if (page.nextCursor !== null || looked === null || looked.lookedTo === null) return page
  return { ...page, nextCursor: encodeCursor(looked.lookedTo) }
}

type Looking = { query: EmailListQuery; recipientKey: string | undefined; range: IdRange }

/** Returns the emails that may be on the page. Null: all of the range. */
async function lookAt(
  handle: Handle,
  scope: Scope,
  { query, recipientKey, range }: Looking,
): Promise<Candidates | null> {
  if (query.search !== undefined) {
    const search = readSearch(query.search)
    if (search === null) throw brokenRule('query.search', 'must have a character that can be seen')
    return selectFitting(handle, scope, { search, range })
  }
  const { tag, campaign, status, domain, until, metadata = {}, limit } = query
  const filters: IndexedFilters = {
    recipientKey,
    pairs: pairsOf(metadata),
    tag: tag !== undefined && (await hasAllTags(handle)) ? tag : undefined,
    campaign,
    status: status !== undefined && isFew(status) ? status : undefined,
  }
  const hasOthers = domain !== undefined || tag !== filters.tag || status !== filters.status
  const count = Object.values(filters)
    .filter((filter) => filter !== undefined)
    .flat().length
  if (count === 0) return hasOthers ? selectNewest(handle, scope, range) : null
  // Nearly all emails of the one filter fit: those of the other mode do not. With `until`, the first hour may not.
  const isOnly = count === 1 && !hasOthers && until === undefined
  return selectOfRarest(handle, scope, filters, { range, limit: isOnly ? 2 * (limit + 1) : lookedThrough })
}

/** The ids of the emails that a page can have. */
function rangeOf({ since, until }: EmailListQuery, before: string | undefined): IdRange {
  const bounds = [before, until === undefined ? undefined : idAboveThoseBefore('email', new Date(until))]
  const below = bounds.flatMap((bound) => bound ?? []).toSorted()[0]
  // Without its last character it is below every id that begins with the same time.
  const above = since === undefined ? '' : firstIdAt('email', new Date(since)).slice(0, -1)
  return { above, below: below ?? '~' }
}
