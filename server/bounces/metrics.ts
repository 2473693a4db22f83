import { Counter, type Registry } from 'prom-client'

/** What came of a message to the return path. `unmatched`: understood, but of no recipient. `gone`: its email is. */
export type InboundKind = 'dsn' | 'arf' | 'auto-reply' | 'unreadable' | 'unmatched' | 'gone'

/** Answers a function that counts one message. */
export function createInboundMetrics(registry: Registry): (kind: InboundKind) => void {
  const messages = new Counter({
    name: 'postern_inbound_messages_total',
    help: 'Messages that came in at the return path of emails, by what they were.',
    labelNames: ['kind'] as const,
    registers: [registry],
  })
  return (kind) => messages.inc({ kind })
}
