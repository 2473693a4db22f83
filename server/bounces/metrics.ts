import { Counter, type Registry } from 'prom-client'

/** The result of a message to the return path. `unmatched`: it matches no recipient. `gone`: its email was deleted. */
export type InboundKind = 'dsn' | 'arf' | 'auto-reply' | 'unreadable' | 'unmatched' | 'gone'

/** Registers the counter and returns a function that counts one message. */
export function createInboundMetrics(registry: Registry): (kind: InboundKind) => void {
  const messages = new Counter({
    name: 'postern_inbound_messages_total',
    help: 'Messages that came in at the return path of emails, by what they were.',
    labelNames: ['kind'] as const,
    registers: [registry],
  })
  return (kind) => messages.inc({ kind })
}
