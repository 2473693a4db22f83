import { once } from 'node:events'
import { connect } from 'node:net'
import express, { type RequestHandler } from 'express'
import { Registry } from 'prom-client'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type ErrorCode, errorBody, errorTable } from '../../contract/errors.ts'
import { logRequests } from '../../server/http/access-log.ts'
import { readJsonBody } from '../../server/http/body.ts'
import { answerErrors } from '../../server/http/errors.ts'
import { assignRequestId } from '../../server/http/request-id.ts'
import { createRequestMetrics } from '../../server/http/request-metrics.ts'
import { listen } from '../../server/http/server.ts'
import { createLogger } from '../../server/observability/logging.ts'
import { DomainError } from '../../server/shared/errors.ts'

/** Serves `handler` on `/things/:id`, and what it logs. */
async function serve(handler: RequestHandler) {
  const lines: string[] = []
  const heard = new EventTarget()
  const logger = createLogger({
    level: 'info',
    destination: {
      write(line) {
        lines.push(line)
        heard.dispatchEvent(new Event('line'))
      },
    },
  })
  const registry = new Registry()
  const app = express()
  app.use(
    (_req, res, next) => {
      assignRequestId(res)
      next()
    },
    logRequests(logger, createRequestMetrics(registry)),
  )
  app.all('/things/:id', readJsonBody(100), handler)
  app.use(answerErrors(logger))
  const server = await listen({ app, host: '127.0.0.1', port: 0, logger })
  onTestFinished(() => server.close(0))
  return {
    url: `${server.url}/things/secret-thing?token=secret-token`,
    port: server.address.port,
    registry,
    /** The first line logged with this message and route, also when it is yet to come. */
    async logged(message: string, route?: string): Promise<Record<string, unknown>> {
      for (;;) {
        const said = lines.map((text) => JSON.parse(text)).filter(({ msg }) => msg === message)
        const line = said.find((fields) => route === undefined || fields.route === route)
        if (line !== undefined) return line
        await once(heard, 'line')
      }
    },
  }
}

function failing(error: unknown): RequestHandler {
  return () => {
    throw error
  }
}

function withCode(code: string): Error {
  return Object.assign(new Error('the inside at 10.0.0.7'), { code })
}

describe('an error', () => {
  test.each(Object.keys(errorTable) as ErrorCode[])(
    'an error of the domain with the code %s has its status',
    async (code) => {
      const { url } = await serve(
        failing(new DomainError(code, 'Do this.', { details: [{ path: 'a', message: 'b' }] })),
      )

      const answer = await fetch(url)

      expect(answer.status).toBe(errorTable[code].status)
      expect(errorBody.parse(await answer.json())).toEqual({
        error: {
          code,
          message: 'Do this.',
          details: [{ path: 'a', message: 'b' }],
          requestId: answer.headers.get('x-request-id'),
        },
      })
      expect(answer.headers.get('www-authenticate')).toBe(answer.status === 401 ? 'Bearer' : null)
      expect(answer.headers.get('retry-after')).toBe([429, 503].includes(answer.status) ? '1' : null)
    },
  )

  test('an error that says when to try again says so in whole seconds, never too early', async () => {
    const { url } = await serve(failing(new DomainError('rate_limit_exceeded', 'Wait.', { retryAfterSeconds: 7.2 })))

    expect((await fetch(url)).headers.get('retry-after')).toBe('8')
  })

  test.each([
    ['of ours', new Error('the inside at 10.0.0.7')],
    ['of PostgreSQL that trying again does not mend', withCode('23505')],
    ['that looks like a bad path', new URIError('the inside at 10.0.0.7')],
    ['that is no Error', 'the inside at 10.0.0.7'],
  ])('%s is a fault of the server, told whole to the log and not at all to the client', async (_, error) => {
    const { url, logged } = await serve(failing(error))

    const answer = await fetch(url)
    const text = await answer.text()

    expect(answer.status).toBe(500)
    expect(text).not.toContain('inside')
    expect(errorBody.parse(JSON.parse(text)).error.code).toBe('internal_error')
    const line = await logged('a request failed')
    expect(line).toMatchObject({ level: 'error', requestId: answer.headers.get('x-request-id') })
    expect(JSON.stringify(line.err)).toContain('the inside at 10.0.0.7')
    if (error instanceof Error) expect(line.err).toHaveProperty('stack')
  })

  test.each([
    ...['ECONNREFUSED', 'ECONNRESET', '57P01', '57P02', '57P03', '53300', '08006', '40001', '40P01', '55P03'].map(
      withCode,
    ),
    new Error('timeout exceeded when trying to connect'),
    new Error('Connection terminated unexpectedly'),
  ])('an error of a database that cannot be used just now may be tried again (%o)', async (error) => {
    const { url, logged } = await serve(failing(error))

    const answer = await fetch(url)

    expect(answer.status).toBe(503)
    expect(answer.headers.get('retry-after')).toBe('1')
    const { code, message } = errorBody.parse(await answer.json()).error
    expect(code).toBe('unavailable')
    expect(message).not.toContain('10.0.0.7')
    expect(await logged('a request could not be answered just now')).toMatchObject({ level: 'warn' })
  })

  test('an error after the answer has begun breaks the connection, so that half of it does not pass for the whole', async () => {
    const { url } = await serve((_req, res) => {
      res.write('half')
      throw new Error('too late')
    })

    await expect(fetch(url).then((answer) => answer.text())).rejects.toThrow()
  })
})

test('a request is logged with its route and what came of it, and nothing of what was sent', async () => {
  const { url, logged } = await serve((_req, res) => void res.status(201).json({ answer: 'secret-answer' }))

  const answer = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-secret': 'secret-header' },
    body: '"secret-body"',
  })

  const line = await logged('request')
  expect(line).toMatchObject({
    level: 'info',
    requestId: answer.headers.get('x-request-id'),
    method: 'POST',
    route: '/things/:id',
    status: 201,
    durationMs: expect.any(Number),
    remoteAddress: '127.0.0.1',
  })
  expect(JSON.stringify(line)).not.toContain('secret')
})

test('a request is counted by its route, and all that have none together', async () => {
  const { url, registry, logged } = await serve((_req, res) => void res.json({}))

  await fetch(url)
  await fetch(url.replace('things', 'made-up'))
  await logged('request', '/things/:id')
  await logged('request', 'unmatched')

  const text = await registry.metrics()
  expect(text).toContain('postern_http_requests_total{method="GET",route="/things/:id",status="200"} 1')
  expect(text).toContain('postern_http_requests_total{method="GET",route="unmatched",status="404"} 1')
  expect(text).toContain('postern_http_request_duration_seconds_count{method="GET",route="/things/:id"} 1')
  expect(text).not.toMatch(/secret|made-up/)
})

test('a request that breaks off in its body is no fault of ours, and counted as aborted', async () => {
  const { port, logged, registry } = await serve((_req, res) => void res.json({}))

  const socket = connect({ port, host: '127.0.0.1' })
  socket.write(
    'POST /things/1 HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n{"half',
    () => socket.resetAndDestroy(),
  )

  expect(await logged('request')).toMatchObject({ status: 'aborted', route: '/things/:id' })
  expect(await registry.metrics()).toContain('status="aborted"} 1')
})
