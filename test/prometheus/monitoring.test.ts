import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createTransport } from 'nodemailer'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { contract } from '../../contract/index.ts'
import { root } from '../docs/document.ts'
import { type Receiver, startReceiver } from '../support/receiver.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { type Prometheus, startPrometheus } from './prometheus.ts'

/* A real Prometheus reads the metrics, the queries of the dashboard for Grafana and the rules for alerts. */

const folder = join(root, 'docs/operating/grafana')
const rulesFile = join(folder, 'alerts.yaml')

let service: TestService
let receiver: Receiver
let prometheus: Prometheus
let webhookId: string

beforeAll(async () => {
  const inbound = { host: '127.0.0.1', port: 0, tls: null }
  service = await startTestService({ mail: { inbound, hostname: 'mail.example.com' } })
  receiver = await startReceiver()
  prometheus = await startPrometheus(service.url, rulesFile)
  const { client } = service
  await client.succeed(contract.domains.create, { body: { name: 'shop.test' } })
  const body = { url: receiver.url, events: ['email.sent' as const] }
  webhookId = (await client.succeed(contract.webhooks.create, { body })).id
})
afterAll(async () => {
  await prometheus?.[Symbol.asyncDispose]()
  await service?.stop()
  await receiver?.stop()
})

type Panel = { title: string; targets?: { expr: string }[]; panels?: Panel[] }

function queriesOf({ title, targets = [], panels = [] }: Panel): [string, string][] {
  return [
    ...targets.map(({ expr }): [string, string] => [title, expr.replaceAll('$job', 'postern')]),
    ...panels.flatMap(queriesOf),
  ]
}

const queries = (JSON.parse(readFileSync(join(folder, 'dashboard.json'), 'utf8')).panels as Panel[]).flatMap(queriesOf)

/** Causes what the panels show: emails that are delivered and bounce, deliveries, one sent again, mail that comes in. */
async function traffic(): Promise<void> {
  const { client, app } = service
  const body = { from: 'hello@shop.test', subject: 'Hello', text: 'Hello' }
  const to = ['delivered@simulator.test', 'bounced@simulator.test']
  await client.succeed(contract.emails.send, { body: { ...body, to } })
  const { data } = await client.succeed(contract.deliveries.list, { params: { id: webhookId }, query: { limit: 1 } })
  for (const { id: deliveryId } of data) {
    await client.send('POST', `/v1/webhooks/${webhookId}/deliveries/${deliveryId}/resend`)
  }
  const mailServer = createTransport({ host: '127.0.0.1', port: app.inboundPort ?? 0, ignoreTLS: true })
  await mailServer.sendMail({ from: 'ada@example.com', to: 'postmaster@mail.example.com', text: 'Hello' })
}

test('promtool finds no fault in the metrics of the service', async () => {
  const metrics = await (await fetch(`${service.url}/metrics`)).text()
  // Those of Node are named by prom-client.
  const ours = metrics.split(/^(?=# HELP )/m).filter((metric) => !metric.startsWith('# HELP nodejs_'))
  expect(ours.length).toBeGreaterThan(20)
  expect(execFileSync('promtool', ['check', 'metrics'], { input: ours.join(''), encoding: 'utf8' })).toBe('')
})

test('each query of the dashboard has a value after some traffic', async () => {
  expect(queries.length).toBeGreaterThan(20)
  const empty = async () => {
    await traffic()
    const found = await Promise.all(
      queries.map(async ([title, expression]) => {
        const samples = await prometheus.query(expression)
        return samples.some(({ value }) => Number.isFinite(value)) ? [] : [`${title}: ${expression}`]
      }),
    )
    return found.flat()
  }
  await expect.poll(empty, { interval: 1_000, timeout: 60_000 }).toEqual([])
}, 90_000)

test('no alert begins while the service works, and one does when it is away', async () => {
  const rules = await prometheus.rules()
  expect(rules.length).toBeGreaterThan(10)
  expect(rules.filter(({ health }) => health !== 'ok')).toEqual([])
  expect(rules.filter(({ state }) => state !== 'inactive')).toEqual([])
  await service.stop()
  const down = async () => (await prometheus.rules()).find(({ name }) => name === 'PosternDown')?.state
  // It fires after two minutes.
  await expect.poll(down).toBe('pending')
})
