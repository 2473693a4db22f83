import fc from 'fast-check'
import { expect, test } from 'vitest'
import { isReservedHeader, mailboxOf } from '../../server/message/headers.ts'
import { readMailbox, writeMailbox } from '../../server/message/mailbox.ts'
import { composer, headersOf, parsed, partsOf } from '../support/worlds/message.ts'

const names = fc
  .oneof(
    fc.string({ unit: 'grapheme', maxLength: 40 }),
    fc.string({ unit: fc.constantFrom(...'a@.<>"\\,;:() é'), maxLength: 20 }),
  )
  .map((text) => text.replace(/[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/gu, ''))
const locals = fc.constantFrom(
  'ann',
  'a.b+c',
  '"a b"',
  '"a@b"',
  '"a,b;c"',
  '"a\\"b"',
  '"a<b>"',
  'jürgen',
  "o'hara",
  '"("',
)
const domains = fc.constantFrom('example.com', 'münchen.example', 'EXAMPLE.org', 'xn--mnchen-3ya.example')
const mailboxes = fc
  .record({ name: fc.option(names), local: locals, domain: domains })
  .map(({ name, local, domain }) => readMailbox(writeMailbox({ name, address: `${local}@${domain}` })))
  .filter(({ mailbox }) => mailbox !== null)
/** Angle brackets cannot go over the line in an address: no command of SMTP could name it. */
const sendable = mailboxes.filter(({ mailbox }) => !/[<>]/.test(mailbox?.address ?? ''))

test('a mailbox that the API took is read as it was written down, whatever its name and address', () => {
  fc.assert(
    fc.property(mailboxes, ({ mailbox }) => {
      if (mailbox === null) throw new Error('it was refused')
      const read = mailboxOf(writeMailbox(mailbox))

      expect(read?.address).toBe(mailbox.address)
      expect(read?.name).toBe((mailbox.name ?? '').replace(/\s+/gu, ' ').trim())
    }),
    { numRuns: 1_000 },
  )
})

test('a mailbox is one mailbox on the line, with the same name', async () => {
  await fc.assert(
    fc.asyncProperty(sendable, async ({ mailbox }) => {
      if (mailbox === null) throw new Error('it was refused')
      const message = await composer.compose(partsOf({ email: { sender: writeMailbox(mailbox) }, signer: null }), null)
      const mail = await parsed(message)

      expect(mail.from?.value).toHaveLength(1)
      expect(mail.from?.value[0]?.name).toBe((mailbox.name ?? '').replace(/\s+/gu, ' ').trim())
      expect(headersOf(message).get('from')).toHaveLength(1)
    }),
    { numRuns: 200 },
  )
})

test.each(['From', 'BCC', 'dkim-signature', 'Content-Anything', 'ARC-Seal', 'Resent-From', 'x-postern-id', 'Received'])(
  '%s is not for the sender to give',
  (name) => {
    expect(isReservedHeader(name)).toBe(true)
  },
)

test.each(['X-Order', 'List-Id', 'In-Reply-To', 'References', 'Feedback-ID', 'Auto-Submitted', 'Contents'])(
  '%s is for the sender to give',
  (name) => {
    expect(isReservedHeader(name)).toBe(false)
  },
)
