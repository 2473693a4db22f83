import { systemClock } from '../../server/lib/clock.ts'
import { createTransport, type TransportOptions } from '../../server/smtp/create-transport.ts'
import type { Conversation, Outcome, Transport } from '../../server/smtp/transport.ts'
import type { ScriptedSmtp } from '../support/scripted-smtp.ts'

export const config = { hostname: 'postern.test', concurrency: 50, connectionsPerHost: 5, messagesPerConnection: 100 }

const text = 'From: a@sender.test\r\nTo: b@receiver.test\r\nSubject: Hello\r\n\r\nHello!\r\n'

/** A conversation with these recipients, or with one. */
export function conversation(changes: Partial<Omit<Conversation, 'recipients'>> & { to?: readonly string[] } = {}) {
  const { to = ['b@receiver.test'], ...rest } = changes
  return {
    lane: 'single' as const,
    destination: 'relay',
    mailFrom: 'bounces@send.sender.test',
    message: Buffer.from(text),
    recipients: to.map((address, position) => ({ position, address })),
    ...rest,
  }
}

/** A transport that hands everything to this server, in the clear unless `relay` says otherwise. */
export function relayTo(server: Pick<ScriptedSmtp, 'port'>, changes: Partial<TransportOptions> = {}): Transport {
  return createTransport({
    config,
    to: { kind: 'relay', relay: { host: '127.0.0.1', port: server.port, tls: 'opportunistic', credentials: null } },
    clock: systemClock,
    ...changes,
  })
}

const never = new AbortController().signal

/** Sends one conversation over a transport, and closes it. Returns the outcomes of the recipients. */
export async function sendOnce(transport: Transport, sent: Conversation = conversation()): Promise<readonly Outcome[]> {
  try {
    return await transport.send(sent, never)
  } finally {
    await transport.close()
  }
}
