import type { Brand } from '../../contract/brand.ts'
import { readableOn } from '../../contract/readable-color.ts'
import { escaped } from '../lib/html-text.ts'

export type ConfirmationText = { subject: string; html: string; text: string }

type Words = {
  brand: Brand
  audienceName: string
  /** Null: the usual one. */
  subject: string | null
  /** The text of the account before the button. Null: none. */
  text: string | null
  /** Where the button leads. */
  link: string
}

const defaultAccent = '#222222'

/** Returns what an email that asks to confirm says. All that comes from the account is escaped. */
export function confirmationText({ brand, audienceName, subject, text, link }: Words): ConfirmationText {
  const accent = brand.accentColor ?? defaultAccent
  const sentence = `Somebody, we hope you, asked for emails of “${brand.name ?? audienceName}” to this address. Confirm that you want them:`
  const after =
    'The link opens a page with a button, and holds for 7 days. If you did not ask for this, do nothing: without your confirmation you get none of these emails.'
  const paragraphs = [...(text === null ? [] : [text]), sentence]
  const button = `background: ${accent}; color: ${readableOn(accent)}; display: inline-block; padding: 12px 24px; border-radius: 5px; text-decoration: none;`
  return {
    subject: subject ?? 'Please confirm your subscription',
    text: `${[...paragraphs, link, after].join('\n\n')}\n`,
    html: `<!doctype html>
<html lang="en">
<body style="font-family: sans-serif; font-size: 16px; line-height: 1.5; color: #222222;">
${brand.name === null ? '' : `<p><strong>${escaped(brand.name)}</strong></p>\n`}${paragraphs.map((one) => `<p style="white-space: pre-line;">${escaped(one)}</p>`).join('\n')}
<p><a href="${escaped(link)}" style="${button}">Confirm</a></p>
<p style="color: #555555;">${escaped(after)}</p>
</body>
</html>
`,
  }
}
