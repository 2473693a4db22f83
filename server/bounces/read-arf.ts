import { headerOf, readFields } from './headers.ts'
import { readTypedAddress } from './read-dsn.ts'

/** A feedback report: somebody marked a message, mostly as spam. */
export type Feedback = {
  /** Lower case, such as `abuse`. */
  feedbackType: string
  /** Possible addresses of the person, if the report has any. */
  recipients: readonly string[]
}

/** Parses a feedback report. Null: the text is not one. Source: RFC 5965 §3. */
export function readFeedback(text: string): Feedback | null {
  const fields = readFields(text)
  const feedbackType = /^[\w-]{1,50}/.exec(headerOf(fields, 'feedback-type') ?? '')?.[0].toLowerCase()
  if (feedbackType === undefined) return null
  const recipients = fields
    .filter(({ name }) => name === 'original-rcpt-to' || name === 'removal-recipient')
    .flatMap(({ value }) => readTypedAddress(value))
  return { feedbackType, recipients }
}
