import { EventEmitter, once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { SMTPServer } from 'smtp-server'
import { patienceMs } from '../support/patience.ts'

export type RecipientsServer = AsyncDisposable & {
  port: number
  /** The first message that was taken for an address, as soon as there is one. */
  messageFor(address: string): Promise<Buffer>
}

/**
 * The mail server of those who are written to, on loopback. There is no `unknown@…`; the mailbox of `full@…` has
 * no room the first time; anybody else takes what comes.
 */
export async function startRecipientsServer(): Promise<RecipientsServer> {
  const messages = new Map<string, Buffer>()
  const taken = new EventEmitter()
  let hasRoom = false
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS', 'AUTH'],
    disableReverseLookup: true,
    onRcptTo({ address }, _session, callback) {
      if (address.startsWith('unknown@')) return callback(refusal(550, '5.1.1 There is nobody of this name here'))
      if (address.startsWith('full@') && !hasRoom) {
        hasRoom = true
        return callback(refusal(452, '4.2.2 There is no room in the mailbox'))
      }
      callback()
    },
    onData(stream, { envelope }, callback) {
      buffer(stream).then((content) => {
        for (const { address } of envelope.rcptTo) if (!messages.has(address)) messages.set(address, content)
        callback(null, '2.6.0 Taken')
        taken.emit('message')
      }, callback)
    },
  })
  server.listen(0, '127.0.0.1')
  await once(server.server, 'listening')
  const { port } = server.server.address() as AddressInfo
  return {
    port,
    async messageFor(address) {
      const signal = AbortSignal.timeout(patienceMs)
      for (;;) {
        const message = messages.get(address)
        if (message !== undefined) return message
        await once(taken, 'message', { signal })
      }
    },
    async [Symbol.asyncDispose]() {
      await new Promise<void>((resolve) => server.close(resolve))
    },
  }
}

function refusal(responseCode: number, message: string): Error {
  return Object.assign(new Error(message), { responseCode })
}
