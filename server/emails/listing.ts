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
import { type EmailRow, selectEmails, selectRecipients } from './queries.ts'
import { emailsLookedThrough, type IdRange, searchEmails, selectNewest } from './search-queries.ts'
import { readSearch, type Search } from './search-text.ts'
import { toEmail } from './to-response.ts'

/**
 * Returns a page of emails, newest first. A page with a filter can have fewer emails than `limit` without being the
 * last: each looks at a bounded number of emails.
 *
 * Throws `rule_violation` for a search without a visible character.
 */
export async function listEmails(handle: Handle, scope: Scope, query: EmailListQuery): Promise<Page<Email>> {
  const { limit, mode = scope.mode } = query
  const before = decodeCursor('email', query.cursor)
  const terms = readTerms(query)
  if (mode !== scope.mode) return { data: [], nextCursor: null }

  const { rows, lookedTo } = await selectPage(handle, scope, { query, terms, before })
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
  if (page.nextCursor !== null || lookedTo === null) return page
  return { ...page, nextCursor: encodeCursor(lookedTo) }
}

/** The texts of a query, as they are looked for. */
type Terms = { recipientKey: string | undefined; search: Search | undefined }

function readTerms({ recipient, search }: EmailListQuery): Terms {
  const recipientKey = recipient === undefined ? undefined : addressKey(readAddress(recipient, 'query.recipient'))
  if (search === undefined) return { recipientKey, search }
  const read = readSearch(search)
  if (read === null) throw brokenRule('query.search', 'must have a character that can be seen')
  return { recipientKey, search: read }
}

type Looking = { query: EmailListQuery; terms: Terms; before: string | undefined }

/** Returns one email more than the page has, if there are more, and the last email that was looked at. */
async function selectPage(
  handle: Handle,
  scope: Scope,
  { query, terms, before }: Looking,
): Promise<{ rows: EmailRow[]; lookedTo: string | null }> {
  const limit = query.limit + 1
  const select = (among?: readonly string[]) =>
    selectEmails(handle, scope, { query, recipientKey: terms.recipientKey, before, among, limit })
  const range = rangeOf(query, before)
  if (terms.search !== undefined) {
    const { ids, lookedTo } = await searchEmails(handle, scope, { search: terms.search, range })
    return { rows: await select(ids), lookedTo }
  }

  const { tag, campaign, status, domain, metadata = {} } = query
  const filters: IndexedFilters = {
    recipientKey: terms.recipientKey,
    pairs: pairsOf(metadata),
    tag: tag !== undefined && (await hasAllTags(handle)) ? tag : undefined,
    campaign,
    status: status !== undefined && isFew(status) ? status : undefined,
  }
  const hasOthers = domain !== undefined || tag !== filters.tag || status !== filters.status
  const count = Object.values(filters)
    .filter((filter) => filter !== undefined)
    .flat().length
  if (count === 0 && !hasOthers) return { rows: await select(), lookedTo: null }
  // Nearly always, the newest emails of one filter fit. Those of the other mode do not, nor those of the first hour
  // with `until`.
  const looks = count === 1 && !hasOthers ? [2 * limit, emailsLookedThrough] : [emailsLookedThrough]
  let page: { rows: EmailRow[]; lookedTo: string | null } = { rows: [], lookedTo: null }
  for (const look of looks) {
    const { ids, lookedTo } =
      count === 0
        ? await selectNewest(handle, scope, range, look)
        : await selectOfRarest(handle, scope, filters, { range, limit: look })
    page = { rows: await select(ids), lookedTo }
    if (page.rows.length === limit || lookedTo === null) break
  }
  return page
}

/** The ids of the emails that a page can have. */
function rangeOf({ since, until }: EmailListQuery, before: string | undefined): IdRange {
  const bounds = [before, until === undefined ? undefined : idAboveThoseBefore('email', new Date(until))]
  const below = bounds.flatMap((bound) => bound ?? []).toSorted()[0]
  // Without its last character it is below every id that begins with the same time.
  const above = since === undefined ? '' : firstIdAt('email', new Date(since)).slice(0, -1)
  return { above, below: below ?? '~' }
}
