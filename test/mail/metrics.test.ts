import { Registry } from 'prom-client'
import { expect, onTestFinished, test } from 'vitest'
import { createMailMetrics } from '../../server/mail/metrics.ts'
import { startMailEngine } from '../support/mail-engine.ts'
import { startScriptedSmtp } from '../support/scripted-smtp.ts'

/** What the metrics say of so many facts as a worker tells, when a server behaves so. */
async function figuresOf(
  behave: (server: Awaited<ReturnType<typeof startScriptedSmtp>>) => void,
): Promise<Record<string, number>> {
  const server = await startScriptedSmtp()
  const engine = await startMailEngine({ port: server.port })
  onTestFinished(async () => {
    await engine[Symbol.asyncDispose]()
    await server.stop()
  })
  behave(server)
  const id = await engine.send({ to: ['ada@example.com', 'bob@example.com'] })
  await engine.statusOf(id, ({ recipients }) => recipients.every((status) => status === 'deferred'))
  const registry = new Registry()
  const metrics = createMailMetrics(registry)
  for (const fact of engine.facts) metrics.onFact(fact)
  metrics.onResent(engine.resent)
  const read = async (name: string) => (await registry.getSingleMetric(name)?.get())?.values[0]?.value ?? 0
  return {
    outcomes: await read('postern_email_outcomes_total'),
    resent: await read('postern_email_recipients_resent_total'),
  }
}

test('recipients whose answer was lost with the line are counted as sent to again', async () => {
  expect(await figuresOf((server) => server.at('message', { next: 'drop' }))).toEqual({ outcomes: 2, resent: 2 })
})

test('recipients of a message that was not sent whole are not', async () => {
  expect(await figuresOf((server) => server.at('data', { next: 'drop' }))).toEqual({ outcomes: 2, resent: 0 })
})
