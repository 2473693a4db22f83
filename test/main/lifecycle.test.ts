import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { access, mkdtemp, readFile, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { scratchDirectory } from '../support/scratch.ts'
import { runNode, type ServiceProcess, startService } from './service-process.ts'

const hasCurl = await promisify(execFile)('curl', ['--version']).then(
  () => true,
  () => false,
)

let parent: string

beforeAll(async () => {
  parent = await mkdtemp(join(scratchDirectory(), 'postern-main-'))
})

afterAll(async () => {
  await rm(parent, { recursive: true, force: true })
})

/** Sends one request with a key. Returns the status and the body of the response. */
async function request(url: string, options: { key: string; method?: string; body?: unknown }) {
  const response = await fetch(url, {
    method: options.method ?? 'GET',
    headers: { authorization: `Bearer ${options.key}`, 'content-type': 'application/json' },
    ...(options.body === undefined ? {} : { body: JSON.stringify(options.body) }),
  })
  return { status: response.status, body: await response.json() }
}

function idOf(body: unknown): string {
  return z.object({ id: z.string() }).parse(body).id
}

function keysOf({ greeting }: ServiceProcess) {
  const [test] = /postern_test_\w+/.exec(greeting) ?? []
  const [live] = /postern_live_\w+/.exec(greeting) ?? []
  return { test: test ?? 'none', live: live ?? 'none' }
}

async function untilRefused(url: string): Promise<void> {
  while (
    await fetch(url).then(
      () => true,
      () => false,
    )
  );
}

describe('the first start', () => {
  let service: ServiceProcess
  let dataDir: string

  beforeAll(async () => {
    dataDir = join(parent, 'first start')
    service = await startService({ DATA_DIR: dataDir, LOG_LEVEL: 'warn', WEBHOOK_CONCURRENCY: '1' })
  })

  afterAll(() => service[Symbol.asyncDispose]())

  test('the first start prints a test key and a live key that work, and where the documentation is', async () => {
    const keys = keysOf(service)
    for (const key of [keys.test, keys.live]) {
      expect(await request(`${service.url}/v1/webhooks`, { key })).toMatchObject({ status: 200 })
    }
    expect(service.greeting).toContain(`documentation at ${service.url}/docs`)
    expect((await fetch(`${service.url}/docs`)).status).toBe(200)
  })

  test('a start says of a setting that lost its meaning what to use instead', () => {
    expect(service.lines.filter((line) => line.startsWith('{')).map((line) => JSON.parse(line).msg)).toContainEqual(
      expect.stringMatching(/^WEBHOOK_CONCURRENCY is set and does nothing any more: ENDPOINT_MAX_IN_FLIGHT /),
    )
  })

  test.skipIf(!hasCurl)('the first start prints a curl line that works as pasted', async () => {
    const line = service.greeting.split('\n').find((printed) => printed.includes('curl '))
    const { stdout } = await promisify(execFile)('sh', ['-c', `${line?.trim()} --silent --fail`])
    expect(JSON.parse(stdout).data[0]).toMatchObject({ type: 'email.sent' })
  })

  test('the first start is told of what the command line does', async () => {
    const env = { DATA_DIR: dataDir }
    const made = await runNode(['server/cli/postern.ts', 'keys', 'create', '--mode', 'live', '--json'], env)
    const { id, key } = JSON.parse(made.stdout)
    const url = `${service.url}/v1/webhooks`
    expect((await request(url, { key })).status).toBe(200)
    expect((await runNode(['server/cli/postern.ts', 'keys', 'revoke', id], env)).exitCode).toBe(0)
    // The message of the revocation is on its way when the command ends.
    while ((await request(url, { key })).status !== 401);
  })
})

test('a process that was killed comes up with everything committed, and shows no keys again', async () => {
  const env = { DATA_DIR: join(parent, 'killed') }
  const first = await startService(env)
  const key = keysOf(first).live
  const audience = await request(`${first.url}/v1/audiences`, { key, method: 'POST', body: { name: 'Committed' } })
  expect(audience.status).toBe(201)
  first.child.kill('SIGKILL')
  expect(await first.exit).toEqual({ code: null, signal: 'SIGKILL' })

  await using second = await startService(env)
  expect(second.greeting).toMatch(
    /^Postern listens on \S+, with its documentation at \S+(\nThere is no user of the dashboard yet; .*)?(\nNo email leaves this machine: .*)?(\nWebhooks may lead to .*)?$/,
  )
  const found = await request(`${second.url}/v1/audiences/${idOf(audience.body)}`, { key })
  expect(found).toEqual({ status: 200, body: audience.body })
  second.child.kill('SIGTERM')
  await second.exit
})

test('a process whose embedded database ends says so in one line and ends, since it can do nothing', async () => {
  const dataDir = join(parent, 'bereft')
  await using service = await startService({ DATA_DIR: dataDir })
  const pidFile = await readFile(join(dataDir, 'postgres', 'data', 'postmaster.pid'), 'utf8')
  process.kill(Number(pidFile.split('\n')[0]), 'SIGKILL')
  expect(await service.exit).toEqual({ code: 1, signal: null })
  expect(await service.stderr).toMatch(/^postern: .*\n$/)
})

test.each(['SIGTERM', 'SIGINT'] as const)(
  'a process that is told to stop by %s ends in order, and its database with it',
  async (signal) => {
    const dataDir = join(parent, 'stopped')
    await using service = await startService({ DATA_DIR: dataDir })
    service.child.kill(signal)
    // A Ctrl-C under npm arrives twice.
    service.child.kill(signal)
    expect(await service.exit).toEqual({ code: 0, signal: null })
    await expect(access(join(dataDir, 'postgres', 'data', 'postmaster.pid'))).rejects.toThrow('ENOENT')
  },
)

test('a process that is told to stop finishes what is in flight, unless it is told a second time', async () => {
  await using service = await startService({ DATA_DIR: join(parent, 'in flight') })
  const key = keysOf(service).live
  // An endpoint that takes a delivery and never answers.
  const endpoint = createServer().listen(0, '127.0.0.1')
  await once(endpoint, 'listening')
  const address = endpoint.address()
  const port = typeof address === 'object' ? address?.port : undefined
  const body = { url: `http://127.0.0.1:${port}/`, events: ['contact.created'] }
  const webhook = await request(`${service.url}/v1/webhooks`, { key, method: 'POST', body })
  const taken = once(endpoint, 'request')
  const answer = request(`${service.url}/v1/webhooks/${idOf(webhook.body)}/test`, { key, method: 'POST', body: {} })
  answer.catch(() => undefined)
  await taken
  service.child.kill('SIGTERM')
  await untilRefused(`${service.url}/healthz`)
  expect(service.child.exitCode).toBeNull()
  const insisting = setInterval(() => service.child.kill('SIGTERM'), 100)
  expect(await service.exit).toEqual({ code: 1, signal: null })
  clearInterval(insisting)
  endpoint.closeAllConnections()
  endpoint.close()
})
