import { createSecretKey, randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { bothPass, composer, mailComposer, parsed, partsOf, signer, verified } from '../support/worlds/message.ts'

const file = (content: Buffer) => ({
  filename: 'a.bin',
  contentType: 'application/octet-stream',
  contentId: null,
  content,
})

test('a large message is composed in a thread as it would be here', async () => {
  const html = `<p>Grüße</p>\n<a href="https://example.com/">there</a>\n`.repeat(10_000)
  const content = randomBytes(1_000_000)
  const make = (bytes: Buffer) =>
    partsOf({
      email: { id: 'email_01jqz4x7m8e5v9t2k6r3w0y1ab', trackClicks: true, trackOpens: true },
      content: { html, attachments: [file(bytes)] },
    })
  const message = await mailComposer.compose(make(content), 0)
  expect(await verified(message)).toEqual(bothPass)
  const [there, here] = [await parsed(message), await parsed(await composer.compose(make(content), 0))]
  expect(there.attachments.map((attachment) => attachment.content.equals(content))).toEqual([true])
  expect(withoutTokens(there.html)).toEqual(withoutTokens(here.html))
  expect([...there.headers.keys()]).toEqual([...here.headers.keys()])
})

test('a large message with many small files that share memory is composed, and leaves them as they are', async () => {
  const files = Array.from({ length: 100 }, (_, index) => Buffer.from(`file ${index}`.repeat(500)))
  const message = await mailComposer.compose(partsOf({ content: { attachments: files.map(file) } }), null)
  const { attachments } = await parsed(message)
  expect(attachments.map(({ content }) => content.toString())).toEqual(files.map(String))
})

test('a large message lets others have their turn meanwhile', async () => {
  const order: string[] = []
  const composing = mailComposer.compose(partsOf({ content: { html: 'ü\n'.repeat(2_000_000) } }), null)
  const told = composing.then(() => order.push('composed'))
  while (order.length < 100) await new Promise<void>((resolve) => setImmediate(() => resolve(void order.push('turn'))))
  await told
  // The main thread has a single turn of work: it starts the thread, and takes the message.
  expect(order.slice(0, 100)).not.toContain('composed')
})

test('a large message that cannot be composed says why', async () => {
  // No key to sign with.
  const keys = signer.keys.map((key) => ({ ...key, privateKey: createSecretKey(Buffer.alloc(32)) }))
  const parts = partsOf({ content: { html: 'x'.repeat(300_000) }, signer: { ...signer, keys } })
  await expect(mailComposer.compose(parts, null)).rejects.toThrow('Invalid key object type')
})

/** Tokens differ each time: they are encrypted. */
function withoutTokens(html: string | false): string[] {
  return [...new Set(String(html).split(/\/t\/[co]\/[\w-]+/))]
}
