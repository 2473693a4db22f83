import { describe, expect, test } from 'vitest'
import { sendEmail } from '../../contract/emails.ts'
import { line } from '../../contract/fields.ts'

const email = { from: 'a@example.com', to: 'b@example.com', subject: 'Hi', text: 'x' }
const fault = 'must not contain line breaks or other control characters'

describe.each([
  ['U+0085', '\u0085'],
  ['U+2028', '\u2028'],
  ['U+2029', '\u2029'],
  ['a line feed', '\n'],
])('%s', (_, character) => {
  test.each(['', 'a'])('a line break is refused in a line, after "%s"', (before) => {
    const { error } = line(100).safeParse(`${before}${character}b`)
    expect(error?.issues).toEqual([expect.objectContaining({ path: [], message: fault })])
  })

  test('a line break is refused in the subject of an email and in the name of a file', () => {
    const attachments = [{ filename: `a${character}.txt`, content: 'aGFsbG8h' }]
    const { error } = sendEmail.safeParse({ ...email, subject: `a${character}b`, attachments })
    expect(error?.issues.map(({ path }) => path.join('.'))).toEqual(['subject', 'attachments.0.filename'])
    expect(error?.issues[0]?.message).toBe(fault)
  })
})
