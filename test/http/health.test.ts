import express from 'express'
import { Registry } from 'prom-client'
import { expect, onTestFinished, test } from 'vitest'
import { answerHealth, answerMetrics, answerReadiness, type Checks } from '../../server/http/health.ts'
import { listen } from '../../server/http/server.ts'
import { createLogger } from '../../server/observability/logging.ts'
import { createRegistry } from '../../server/observability/registry.ts'

async function serve({ checks = {}, registry = new Registry() }: { checks?: Checks; registry?: Registry }) {
  const app = express()
  app.get('/healthz', answerHealth)
  app.get('/readyz', answerReadiness(checks, 30))
  app.get('/metrics', answerMetrics(registry))
  const server = await listen({ app, host: '127.0.0.1', port: 0, logger: createLogger({ level: 'silent' }) })
  onTestFinished(() => server.close(0))
  return (path: string) => fetch(server.url + path)
}

test('/healthz answers as long as the process does, whatever else fails', async () => {
  const get = await serve({ checks: { database: async () => false } })

  const answer = await get('/healthz')

  expect(answer.status).toBe(200)
  expect(await answer.json()).toEqual({ status: 'ok' })
})

test('/readyz answers 200 when every check passes', async () => {
  const get = await serve({ checks: { database: async () => true, workers: async () => true } })

  const answer = await get('/readyz')

  expect(answer.status).toBe(200)
  expect(await answer.json()).toEqual({ status: 'ready', checks: { database: 'ok', workers: 'ok' } })
})

test('/readyz answers 503 with the names of those that fail, throw or hang, and not why', async () => {
  const get = await serve({
    checks: {
      database: async () => true,
      migrations: async () => false,
      queue: () => Promise.reject(new Error('password of 10.0.0.7')),
      workers: () => new Promise(() => undefined),
    },
  })

  const answer = await get('/readyz')

  expect(answer.status).toBe(503)
  expect(await answer.json()).toEqual({
    status: 'unavailable',
    checks: { database: 'ok', migrations: 'failed', queue: 'failed', workers: 'failed' },
  })
})

test('/metrics tells the figures in the format of Prometheus', async () => {
  const get = await serve({ registry: createRegistry() })

  const answer = await get('/metrics')

  expect(answer.headers.get('content-type')).toMatch(/^text\/plain; version=0\.0\.4/)
  expect(await answer.text()).toMatch(/^process_cpu_seconds_total \d/m)
})
