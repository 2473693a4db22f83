import { Registry } from 'prom-client'
import { expect, test } from 'vitest'
import { createMailMetrics } from '../../server/email-delivery/metrics.ts'
import type { ScriptedSmtp } from '../support/scripted-smtp.ts'
import { startWithScript } from '../support/worlds/email-delivery.ts'

/** Returns the metrics of a worker whose mail server behaves so at first, and recovers before the second attempt. */
async function figuresOf(behave: (server: ScriptedSmtp) => void): Promise<Record<string, number>> {
  const { server, engine } = await startWithScript()
  behave(server)
  const id = await engine.send({ to: ['ada@example.com', 'bob@example.com'] })
  await engine.statusOf(id, ({ recipients }) => recipients.every((status) => status === 'deferred'))
  server.at('message', () => undefined)
  server.at('data', () => undefined)
  await engine.advance(301)
  await engine.statusOf(id, ({ recipients }) => recipients.every((status) => status === 'delivered'))
  const registry = new Registry()
  const metrics = createMailMetrics(registry)
  for (const fact of engine.facts) metrics.onFact(fact)
  metrics.onResent(engine.resent)
  const { values = [] } = (await registry.getSingleMetric('postern_email_outcomes_total')?.get()) ?? {}
  const resent = await registry.getSingleMetric('postern_email_recipients_resent_total')?.get()
  return {
    ...Object.fromEntries(values.map(({ labels, value }) => [labels.kind, value])),
    resent: resent?.values[0]?.value ?? Number.NaN,
  }
}

test('recipients whose answer was lost with the line are counted as sent to again', async () => {
  expect(await figuresOf((server) => server.at('message', { next: 'drop' }))).toEqual({
    deferred: 2,
    accepted: 2,
    resent: 2,
  })
})

test('recipients of a message that was not sent whole are not', async () => {
  expect(await figuresOf((server) => server.at('data', { next: 'drop' }))).toEqual({
    deferred: 2,
    accepted: 2,
    resent: 0,
  })
})
