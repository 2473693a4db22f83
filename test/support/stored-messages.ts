import type { Mode } from '../../contract/mode.ts'
import { newId } from '../../server/shared/ids.ts'
import type { TestDatabase } from './database.ts'

export type StoredMessage = {
  /** Default: live. */
  mode?: Mode
  accountId: string | null
  emailId?: string | null
  mailFrom?: string
  recipients?: string[]
  content?: string | Buffer
}

/** A message with one file. */
export const messageWithFile = [
  'Subject: Terms',
  'Content-Type: multipart/mixed; boundary=b',
  '',
  '--b',
  'Content-Type: application/pdf; name=terms.pdf',
  'Content-Disposition: attachment; filename=terms.pdf',
  'Content-Transfer-Encoding: base64',
  '',
  'JVBERi0xLjcK',
  '--b--',
  '',
].join('\r\n')

/** Puts a message where the capture transport keeps them. Answers its id. */
export async function insertCapturedMessage({ db }: Pick<TestDatabase, 'db'>, message: StoredMessage): Promise<string> {
  const row = { ...rowOf(message), id: newId('capturedMessage', new Date()) }
  await db.insertInto('captured_messages').values(row).execute()
  return row.id
}

/** Puts a message where those are kept that came back and were not understood. Answers its id. */
export async function insertInboundMessage(
  { db }: Pick<TestDatabase, 'db'>,
  { reason = 'It cannot be read.', ...message }: StoredMessage & { reason?: string },
): Promise<string> {
  const row = { ...rowOf(message), id: newId('inboundMessage', new Date()), reason }
  await db.insertInto('inbound_messages').values(row).execute()
  return row.id
}

function rowOf({
  accountId,
  mode = 'live',
  emailId = null,
  mailFrom = '',
  recipients = ['ada@example.org'],
  content,
}: StoredMessage) {
  return {
    account_id: accountId,
    mode,
    email_id: emailId,
    mail_from: mailFrom,
    recipients,
    content: Buffer.from(content ?? 'From: shop@example.com\r\nSubject: Hello\r\n\r\nHello\r\n'),
    created_at: new Date(),
  }
}
