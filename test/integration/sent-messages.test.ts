import { randomBytes } from 'node:crypto'
import { dkimVerify } from 'mailauth/lib/dkim/verify.js'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { contract } from '../../contract/index.ts'
import { readConfig } from '../../server/config/config.ts'
import { type ScriptedSmtp, startScriptedSmtp } from '../support/scripted-smtp.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { parsed } from '../support/worlds/message.ts'

/* From the API over a socket to a mail server, by the settings that an operator makes. */

let server: ScriptedSmtp
let service: TestService
let records: readonly { name: string; value: string }[]

beforeAll(async () => {
  server = await startScriptedSmtp()
  const { mail } = readConfig({
    MAIL_TRANSPORT: 'relay',
    SMTP_URL: `smtp://127.0.0.1:${server.port}`,
    MAIL_HOSTNAME: 'mail.postern.test',
    MAIL_CONNECTIONS_PER_HOST: '1',
    MAIL_MESSAGES_PER_CONNECTION: '2',
  })
  service = await startTestService({ mail, maxEmailBodyBytes: 1_048_576 })
  const domain = await service.client.succeed(contract.domains.create, { body: { name: 'shop.test' } })
  records = domain.records
  await service.database.db.updateTable('domains').set({ status: 'verified' }).where('id', '=', domain.id).execute()
})
afterAll(async () => {
  await service?.stop()
  await server?.stop()
})

/** Sends it and answers what the server was given. */
async function sent(email: { to: string[]; bcc?: string[]; subject: string; text: string } & Record<string, unknown>) {
  const count = server.messages.length + 1
  await service.client.succeed(contract.emails.send, { body: { from: 'Shop <hello@shop.test>', ...email } })
  await expect.poll(() => server.messages.length).toBe(count)
  return server.messages.at(-1) ?? expect.fail('nothing came')
}

test('what a mail server is given is whole, signed, and says nothing of hidden recipients', async () => {
  const subject = 'Grüße  aus Köln 😀'
  const long = 'x'.repeat(2_000)
  const html = `<p title="${long}">Schön <img src="cid:logo"></p>`
  const text = `.\n.. Schön, dass du da bist.\nFrom here\n${long}\n`
  const [file, image] = [randomBytes(40_000), randomBytes(3_000)]
  const { data, recipients } = await sent({
    to: ['Ada <ada@example.org>'],
    bcc: ['Hidden <boss@example.org>'],
    subject,
    text,
    html,
    attachments: [
      { filename: 'Größen.bin', content: file.toString('base64'), contentType: 'application/octet-stream' },
      { filename: 'logo.png', content: image.toString('base64'), contentType: 'image/png', contentId: 'logo' },
    ],
  })

  expect(recipients.map(({ address }) => address)).toEqual(['ada@example.org', 'boss@example.org'])
  const source = data.toString('latin1')
  expect(source).not.toMatch(/boss@|^bcc:/im)
  const lines = source.split('\r\n')
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(998)
  expect(lines.some((line) => /[\r\n]/.test(line))).toBe(false)

  const { results } = await dkimVerify(data, {
    strict: true,
    resolver: async (name) => records.filter((record) => record.name === name).map(({ value }) => [value]),
  })
  expect(results.map(({ status, signingDomain }) => [status.result, signingDomain])).toEqual([
    ['pass', 'shop.test'],
    ['pass', 'shop.test'],
  ])

  const types = [...source.matchAll(/^Content-Type: ([a-z]+\/[a-z-]+)/gim)].map(([, type]) => type)
  expect(types).toEqual([
    'multipart/mixed',
    'multipart/alternative',
    'text/plain',
    'multipart/related',
    'text/html',
    'image/png',
    'application/octet-stream',
  ])
  const mail = await parsed(data)
  expect(mail).toMatchObject({ subject, text, html, from: { text: '"Shop" <hello@shop.test>' } })
  expect(mail.attachments).toMatchObject([
    { filename: 'logo.png', contentType: 'image/png', cid: 'logo', related: true },
    { filename: 'Größen.bin', contentType: 'application/octet-stream' },
  ])
  expect(mail.attachments.map(({ content }) => content.equals(image) || content.equals(file))).toEqual([true, true])
})

test('a connection carries as many messages as the settings say', async () => {
  const connections: number[] = []
  for (let n = 0; n < 5; n++) {
    const { connection } = await sent({ to: [`n${n}@example.org`], subject: 'Hello', text: 'Hello' })
    connections.push(connection)
  }
  const counts = [...Map.groupBy(server.messages, ({ connection }) => connection).values()].map(({ length }) => length)
  expect(counts).toEqual([2, 2, 2])
  expect(connections).toEqual(connections.toSorted((a, b) => a - b))
})
