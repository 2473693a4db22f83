import { invisible } from '../message/subject-key.ts'

/** The searched fields of a message. */
export type Searched = {
  id: string
  emailId: string | null
  subject: string | null
  from: string | null
  recipients: readonly string[]
}

/** Returns the text of a search as it is compared. Empty: nothing of it can be seen. */
export function searchKeyOf(text: string): string {
  const isPlain = /^[!-~]*(?: [!-~]+)*$/.test(text)
  const visible = isPlain
    ? text
    : text.toWellFormed().normalize('NFKC').replaceAll(/\s+/gu, ' ').replaceAll(invisible, '').trim()
  return visible.toLowerCase()
}

/** Returns true when a message has `key`, which `searchKeyOf` made, in its subject, a sender, a recipient or an id. */
export function fitsSearch({ id, emailId, subject, from, recipients }: Searched, key: string): boolean {
  // A key has no line break, so that none fits where two texts meet.
  const text = [id, emailId ?? '', subject ?? '', from ?? '', ...recipients].map(searchKeyOf).join('\n')
  return text.includes(key)
}
