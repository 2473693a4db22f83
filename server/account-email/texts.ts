import type { AccountEmail } from '../users/account-emails.ts'

/** The content of an email. */
export type EmailText = { subject: string; text: string; html: string }

/** Returns the words of an email. They hold no text that a member wrote, so that invitations are of no use to spammers. */
export function textOf({ kind, link, to, expiresAt, invitation }: AccountEmail): EmailText {
  const until = `${expiresAt.toISOString().slice(0, 16).replace('T', ' ')} UTC`
  if (kind === 'password_reset' || invitation === null) {
    return written({
      subject: 'Set a new password for Postern',
      lines: [
        `A new password was asked for the user ${to}. Set it with this link:`,
        `The link works once, until ${until}. All sessions of the user end then. If there is a second factor, it is asked for as well.`,
        'If you did not ask for this, do nothing: the password stays as it is.',
      ],
      link,
    })
  }
  return written({
    subject: `You are invited to ${invitation.accountName} on Postern`,
    lines: [
      `You are invited to the account "${invitation.accountName}" as ${invitation.role}. Accept with this link:`,
      `The link works once, until ${until}.`,
      `It was sent to ${to}. If you do not expect it, do nothing.`,
    ],
    link,
  })
}

type Words = { subject: string; lines: readonly [before: string, ...after: string[]]; link: string }

function written({ subject, lines: [before, ...after], link }: Words): EmailText {
  const text = [before, link, ...after].join('\n\n')
  const paragraphs = [before, null, ...after].map((line) =>
    line === null ? `<p><a href="${escaped(link)}">${escaped(link)}</a></p>` : `<p>${escaped(line)}</p>`,
  )
  return {
    subject,
    text: `${text}\n`,
    html: `<!doctype html>\n<html lang="en">\n<body>\n${paragraphs.join('\n')}\n</body>\n</html>\n`,
  }
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
}
