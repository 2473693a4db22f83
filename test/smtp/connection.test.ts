import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { SmtpConnection, SmtpConnectionError } from '../../server/smtp/connection.ts'
import { createTestTimer } from '../support/timer.ts'

const never = new AbortController().signal

/** A line to a server that reads nothing, and says this. */
async function lineTo(words: string): Promise<SmtpConnection> {
  const server = createServer((socket) => {
    socket.pause().on('error', () => undefined)
    socket.write(words)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  const target = { address: '127.0.0.1', port: (server.address() as AddressInfo).port, implicitTls: null }
  return SmtpConnection.connect({ ...target, timeoutMs: 1000 }, createTestTimer().startTimer, never)
}

const longReply = `${`250-${'x'.repeat(4000)}\r\n`.repeat(99)}250 x\r\n`

test.each([
  ['long replies', longReply.repeat(13)],
  ['short replies', '250 x\r\n'.repeat(700_000)],
  ['empty lines of replies', `${'250-\r\n'.repeat(99)}250 \r\n`.repeat(8_000)],
])('a server that takes nothing and sends 5 MB of %s is given up', async (_name, words) => {
  const connection = await lineTo(words)

  await expect(connection.transfer(Buffer.alloc(16_000_000), 180_000)).rejects.toMatchObject({ fault: 'invalid-reply' })
})

test('a reply that is waited for may be as long as replies can be', async () => {
  const connection = await lineTo(longReply.repeat(13))

  expect((await connection.reply(1000)).lines).toHaveLength(100)
  connection.fail(new SmtpConnectionError('lost', 'The test is over.'))
})
