import { idPattern, idPrefixes, idSuffix } from '../../contract/ids.ts'
import { addressKey } from '../message/address.ts'
import { readMailbox } from '../message/mailbox.ts'
import { invisible, subjectKey } from '../message/subject-key.ts'

/** Above all characters of texts. */
const lastCharacter = '\u{10ffff}'

/** A range of texts: `from` inclusive, `below` exclusive. */
export type TextRange = { from: string; below: string }

/** The terms of a search. An email matches if it has one of them. With `ids` all others are null. */
export type Search = {
  /** The email with this id. */
  id: string | null
  ids: TextRange | null
  addresses: TextRange | null
  subjects: TextRange | null
}

/**
 * Reads the text of a search: the beginning of the address of a recipient, of a subject or of the id of an email, or a
 * `Message-ID`. Null: nothing of it can be seen.
 */
export function readSearch(text: string): Search | null {
  const subject = subjectKey(text)
  if (subject === '') return null
  if (beginsId.test(subject)) return { id: null, ids: rangeOf(subject), addresses: null, subjects: null }
  return { id: idInMessageId(subject), ids: null, addresses: addressesOf(text), subjects: rangeOf(subject) }
}

function rangeOf(prefix: string): TextRange {
  return { from: prefix, below: `${prefix}${lastCharacter}` }
}

/** The prefix of ids and what can follow it. */
const beginsId = new RegExp(`^${idPrefixes.email}_[0-9a-hjkmnp-tv-z]{0,26}$`)

/** Returns the id in a `Message-ID` of this service, which is the part before the `@` behind the prefix. */
function idInMessageId(text: string): string | null {
  const local = /^<?([0-9a-z]{26})@/.exec(text)?.[1] ?? ''
  const id = `${idPrefixes.email}_${local}`
  return idSuffix.test(local) && idPattern('email').test(id) ? id : null
}

/** The most characters of a mailbox, with its name. */
const mailboxLength = 500

function addressesOf(text: string): TextRange | null {
  const given = text.replaceAll(invisible, '').trim()
  if (given.length > mailboxLength) return null
  const { mailbox } = readMailbox(given)
  if (mailbox !== null) return rangeOf(addressKey(mailbox.address))
  // An address has spaces in quotes only.
  return given.includes(' ') && !given.startsWith('"') ? null : rangeOf(given.normalize('NFC').toLowerCase())
}
