import { Counter, Gauge, type Registry } from 'prom-client'
import type { RecipientFact } from './outcomes.ts'

export type MailMetrics = {
  /** Counts what was told of a recipient. */
  onFact(fact: RecipientFact): void
  /** Counts recipients that are sent to again, since the answer to an earlier attempt is not known. */
  onResent(count: number): void
  /** Shows how many destinations cannot be used. */
  onUnusable(count: number): void
}

/** Figures of email, counted as it happens. */
export function createMailMetrics(registry: Registry): MailMetrics {
  const registers = [registry]
  const outcomes = new Counter({
    name: 'postern_email_outcomes_total',
    help: 'What this process learned of recipients, by kind; a recipient can have several.',
    labelNames: ['kind'] as const,
    registers,
  })
  const resent = new Counter({
    name: 'postern_email_recipients_resent_total',
    help: 'Recipients that were sent to again although the server may have taken the message: the answer was lost.',
    registers,
  })
  const unusable = new Gauge({
    name: 'postern_mail_unusable_destinations',
    help: 'Destinations of email that this process cannot use at present: the relay, or domains with no server that can be talked to.',
    registers,
  })
  return {
    onUnusable: (count) => unusable.set(count),
    onFact: ({ kind }) => outcomes.inc({ kind }),
    onResent: (count) => resent.inc(count),
  }
}
