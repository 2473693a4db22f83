import { Counter, Gauge, type Registry } from 'prom-client'
import type { RecipientFact } from './recipient-facts.ts'

export type MailMetrics = {
  /** Counts a fact about a recipient. */
  onFact(fact: RecipientFact): void
  /** Counts recipients that are sent to again because the result of an earlier attempt is unknown. */
  onResent(count: number): void
  /** Sets the number of destinations that cannot be used. */
  onUnusable(count: number): void
}

/** Creates and registers the metrics of sending email. */
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
