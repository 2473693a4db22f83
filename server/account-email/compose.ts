import MailComposer from 'nodemailer/lib/mail-composer'
import { type DkimSigner, signMessage } from '../message/dkim.ts'
import { field, mailbox, mailboxField, textField } from '../message/headers.ts'
import type { Mailbox } from '../message/mailbox.ts'
import { renderMessage } from '../message/render.ts'
import type { AccountEmail } from '../users/account-emails.ts'
import { textOf } from './texts.ts'

export type ComposeOptions = {
  from: Mailbox
  /** Null: not signed. */
  signer: DkimSigner | null
  at: Date
}

/** Returns the message as sent over SMTP. It has neither links to track nor tokens of an account's emails. */
export async function composeAccountEmail(email: AccountEmail, { from, signer, at }: ComposeOptions): Promise<Buffer> {
  const { subject, text, html } = textOf(email)
  const crlf = (lines: string) => lines.replaceAll('\n', '\r\n')
  const root = new MailComposer({
    messageId: `<${email.linkId.slice(email.linkId.indexOf('_') + 1)}@${from.domain}>`,
    date: at,
    text: crlf(text),
    html: crlf(html),
    boundaryPrefix: '=_postern',
    disableFileAccess: true,
    disableUrlAccess: true,
  }).compile()
  const fields = [
    mailboxField('From', [mailbox(from.name ?? '', from.address)]),
    mailboxField('To', [mailbox('', email.to)]),
    textField('Subject', subject),
    // So that no vacation message comes back. Source: RFC 3834 §5.
    field('Auto-Submitted', 'auto-generated'),
  ]
  const message = renderMessage(
    fields.filter((lines) => lines !== null),
    root,
  )
  return signer === null ? message : signMessage(message, signer, at)
}
