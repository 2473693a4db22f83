import type { Email } from '../../contract/email-resource.ts'
import type { EmailListQuery } from '../../contract/emails.ts'
import type { Page } from '../../contract/pagination.ts'
import type { Handle } from '../database/connection.ts'
import type { EmailStatus } from '../database/tables/emails.ts'
import { addressKey } from '../message/address.ts'
import { readAddress } from '../message/mailbox.ts'
import { brokenRule } from '../shared/errors.ts'
import { firstIdAt, idAboveThoseBefore } from '../shared/ids.ts'
import { decodeCursor, encodeCursor, pageOfRows } from '../shared/pagination.ts'
import type { Scope } from '../shared/scope.ts'
import { selectEmails, selectRecipients } from './queries.ts'
import { type Candidates, type IdRange, selectFitting, selectNewest } from './search-queries.ts'
import { readSearch } from './search-text.ts'
import { toEmail } from './to-response.ts'

/**
 * Returns a page of emails, newest first. A page with `search`, or with `domain` or `status` and no filter that has an
 * index, can have fewer emails than `limit` without being the last: each looks at a bounded number of emails.
 *
 * Throws `rule_violation` for a search without a visible character.
 */
export async function listEmails(handle: Handle, scope: Scope, query: EmailListQuery): Promise<Page<Email>> {
  const { recipient, limit } = query
  const before = decodeCursor('email', query.cursor)
  const looked = await lookAt(handle, scope, { query, range: rangeOf(query, before) })
  const rows = await selectEmails(handle, scope, {
    query,
    recipientKey: recipient === undefined ? undefined : addressKey(readAddress(recipient, 'query.recipient')),
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

type Looking = { query: EmailListQuery; range: IdRange }

/** Returns the emails that may be on the page. Null: the statement of the list finds them with an index. */
async function lookAt(handle: Handle, scope: Scope, { query, range }: Looking): Promise<Candidates | null> {
  if (query.search !== undefined) {
    const search = readSearch(query.search)
    if (search === null) throw brokenRule('query.search', 'must have a character that can be seen')
    return selectFitting(handle, scope, { search, range })
  }
  const isIndexed = [query.recipient, query.tag, query.campaign].some((filter) => filter !== undefined)
  if (isIndexed || Object.keys(query.metadata ?? {}).length > 0) return null
  const needsLook = query.domain !== undefined || (query.status !== undefined && usual.includes(query.status))
  return needsLook ? selectNewest(handle, scope, range) : null
}

/** States that most emails end in, and that no index holds. */
const usual: readonly EmailStatus[] = ['sent', 'delivered', 'validated']

/** The ids of the emails that a page can have. */
function rangeOf({ since, until }: EmailListQuery, before: string | undefined): IdRange {
  const bounds = [before, until === undefined ? undefined : idAboveThoseBefore('email', new Date(until))]
  const below = bounds.flatMap((bound) => bound ?? []).toSorted()[0]
  // Without its last character it is below every id that begins with the same time.
  const above = since === undefined ? '' : firstIdAt('email', new Date(since)).slice(0, -1)
  return { above, below: below ?? '~' }
}
