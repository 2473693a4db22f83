import type { Email, EmailAttachment, EmailDetails } from '../../contract/email-resource.ts'
import { type Handle, inTransaction } from '../database/connection.ts'
import { type StreamedText, streamedBase64 } from '../lib/streamed-text.ts'
import { notFound } from '../shared/errors.ts'
import type { Scope } from '../shared/scope.ts'
import {
  type EmailRow,
  findAttachment,
  findContent,
  findEmail,
  findLargeContent,
  readAttachment,
  selectAttachments,
  selectRecipients,
  selectTimeline,
  sizeOfContent,
} from './queries.ts'
import { toEmail, toEmailDetails } from './to-response.ts'

/** Bytes of HTML and text above which content is large. */
const largeContent = 262_144

/**
 * Returns an email with its content, recipients, attachments and timeline. Throws `not_found`.
 *
 * @param enterLarge Awaited before large content is read, which stays in memory until the client has received it.
 *   Default: does not wait.
 */
export async function getEmail(
  handle: Handle,
  scope: Scope,
  id: string,
  enterLarge?: () => Promise<void>,
): Promise<EmailDetails> {
  // In one transaction, so that all queries use one connection and are pipelined.
  const found = await inTransaction(handle, async (trx) => {
    const row = await findEmail(trx, scope, id)
    if (row === undefined) throw notFound('email', id)
    const [recipients, attachments, timeline, contentBytes] = await Promise.all([
      selectRecipients(trx, [id]),
      selectAttachments(trx, id),
      selectTimeline(trx, id),
      sizeOfContent(trx, id),
    ])
    return { row, recipients, attachments, timeline, contentBytes }
  })
  const { row, contentBytes, ...parts } = found
  const isLarge = contentBytes > largeContent
  if (isLarge) await enterLarge?.()
  // Read last: if the content still exists, so did all that was read before. Retention may delete an email anytime.
  const content = await (isLarge ? findLargeContent : findContent)(handle, id)
  if (content === undefined) throw notFound('email', id)
  return toEmailDetails(row, { ...parts, content })
}

/** Returns the attachment at an index, with its content. Throws `not_found`. */
export async function getAttachment(
  handle: Handle,
  scope: Scope,
  { id, index }: { id: string; index: number },
  enterLarge?: () => Promise<void>,
): Promise<Omit<EmailAttachment, 'content'> & { content: string | StreamedText }> {
  const key = { emailId: id, position: index }
  const found = await findAttachment(handle, scope, key)
  if (found === undefined) throw notFound('attachment', `${id}/${index}`)
  const isLarge = found.size > largeContent
  if (isLarge) await enterLarge?.()
  const content = streamedBase64(() => readAttachment(handle, { ...key, size: found.size }))
  return { ...found, content: isLarge ? content : await content.whole() }
}

/** Returns the email of a row, with its recipients. */
export async function withRecipients(handle: Handle, row: EmailRow): Promise<Email> {
  return toEmail(row, await selectRecipients(handle, [row.id]))
}
