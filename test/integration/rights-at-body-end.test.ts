import { connect, type Socket } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { contract } from '../../contract/index.ts'
import { patienceMs } from '../support/patience.ts'
import { signUp } from '../support/people.ts'
import { startTestService, type TestService } from '../support/service.ts'

/*
 * A client may take long to send a body. What it may do is looked at when the request begins, and again when the body
 * is there.
 */

let service: TestService

beforeAll(async () => {
  service = await startTestService({ roles: { worker: false } })
})
afterAll(() => service.stop())

const body = JSON.stringify({ name: 'Late', permissions: ['events:read'] })

/** Sends a request to create a key but for the end of its body. `finish` sends the end and returns the response. */
async function beginCreate(headers: Record<string, string>): Promise<{ finish(): Promise<string> }> {
  const { hostname, port, host } = new URL(service.url)
  const socket: Socket = connect({ host: hostname, port: Number(port) })
  let received = ''
  socket.setEncoding('utf8')
  socket.on('data', (chunk: string) => {
    received += chunk
  })
  const until = (isDone: () => boolean, what: string) =>
    new Promise<void>((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`${what} did not come: ${received}`)), patienceMs)
      const look = () => {
        if (!isDone()) return
        clearTimeout(timer)
        resolve()
      }
      socket.on('data', look).on('close', look)
      look()
    })
  const lines = {
    host,
    'content-type': 'application/json',
    'content-length': String(body.length),
    connection: 'close',
    // The service says by this that it has read the head.
    expect: '100-continue',
    ...headers,
  }
  const head = Object.entries(lines).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.write(`POST /v1/api-keys HTTP/1.1\r\n${head.join('')}\r\n`)
  await until(() => received.includes('100 Continue'), 'the request for the body')
  socket.write(body.slice(0, -1))
  return {
    async finish() {
      received = ''
      socket.write(body.slice(-1))
      const closed = new Promise((resolve) => socket.once('close', resolve))
      await until(() => received !== '', 'the response')
      await closed
      return received
    },
  }
}

/** Returns how many keys such requests have made. */
async function createdKeys(): Promise<number> {
  const rows = await service.database.db.selectFrom('api_keys').select('id').where('name', '=', 'Late').execute()
  return rows.length
}

test('a key that is revoked while its request sends the body makes no key', async () => {
  const made = await service.client.succeed(contract.apiKeys.create, {
    body: { name: 'Maker', permissions: ['api_keys:write', 'events:read'] },
  })
  const before = await createdKeys()
  const { finish } = await beginCreate({ authorization: `Bearer ${made.key}` })
  await service.client.succeed(contract.apiKeys.revoke, { params: { id: made.id }, body: {} })
  expect(await finish()).toMatch(/^HTTP\/1\.1 401 /)
  expect(await createdKeys()).toBe(before)
})

test('a member who is removed while a request sends its body makes no key', async () => {
  const owner = await signUp(service)
  const developer = await signUp(service, { role: 'developer' })
  const before = await createdKeys()
  const { finish } = await beginCreate(developer.headers())
  expect((await owner.send('DELETE', `/v1/members/${developer.userId}`)).status).toBe(204)
  expect(await finish()).toMatch(/^HTTP\/1\.1 404 /)
  expect(await createdKeys()).toBe(before)
})

test('a session that ends while its request sends the body makes no key', async () => {
  const developer = await signUp(service, { role: 'developer' })
  const { finish } = await beginCreate(developer.headers())
  expect((await developer.send('DELETE', '/v1/session')).status).toBe(204)
  expect(await finish()).toMatch(/^HTTP\/1\.1 401 /)
})

test('a body that comes late is taken while nothing has changed', async () => {
  const developer = await signUp(service, { role: 'developer' })
  const before = await createdKeys()
  const { finish } = await beginCreate(developer.headers())
  expect(await finish()).toMatch(/^HTTP\/1\.1 201 /)
  expect(await createdKeys()).toBe(before + 1)
})
