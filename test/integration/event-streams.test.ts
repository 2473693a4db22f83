import { once } from 'node:events'
import { connect } from 'node:net'
import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { contract } from '../../contract/index.ts'
import { sessionDays } from '../../contract/sessions.ts'
import { maxStreamsPerAccount } from '../../server/events/streams.ts'
import { newId } from '../../server/shared/ids.ts'
import { openStream } from '../support/event-stream.ts'
import { patienceMs } from '../support/patience.ts'
import { signUp } from '../support/people.ts'
import { startTestService, type TestService } from '../support/service.ts'

let service: TestService

beforeAll(async () => {
  service = await startTestService({ heartbeatMs: 50 })
})
afterAll(() => service.stop())

let counter = 0

/** Adds a person, which is an event. Returns their address. */
async function happen(): Promise<string> {
  const email = `person-${++counter}@example.com`
  await service.client.succeed(contract.subscribers.create, { body: { email } })
  return email
}

const open = (headers: Record<string, string>, query = '') =>
  openStream(`${service.url}/v1/events/stream${query}`, headers)
const withKey = (key = service.keys.live) => ({ authorization: `Bearer ${key}` })

test('a stream has each event as the API shows it, and goes on after the last id', async () => {
  await using stream = await open(withKey())
  expect([stream.status, stream.headers['content-type'], stream.headers['cache-control']]).toEqual([
    200,
    'text/event-stream',
    'no-store',
  ])
  await stream.until(0)
  await happen()
  const [id = ''] = await stream.until(1)
  expect(stream.events[0]).toEqual((await service.client.send('GET', `/v1/events/${id}`)).body)
  stream.close()

  const missed = [await happen(), await happen()]
  await using resumed = await open({ ...withKey(), 'last-event-id': id }, `?after=${id}`)
  await resumed.until(2)
  expect(resumed.events.map(({ data }) => Object(data).email)).toEqual(missed)
  // The header wins, since a client that reconnects by itself keeps its address.
  await using third = await open({ ...withKey(), 'last-event-id': resumed.ids[0] ?? '' }, `?after=${id}`)
  await third.until(1)
  expect(third.ids).toEqual(resumed.ids.slice(1))
})

test('the first line of a stream tells after which event it begins, so that a break before the first event loses none', async () => {
  await using stream = await open(withKey(), '?type=subscriber.added')
  await stream.until(0)
  stream.close()
  const email = await happen()
  await using resumed = await open({ ...withKey(), 'last-event-id': stream.lastId() }, '?type=subscriber.added')
  await resumed.until(1)
  expect(resumed.events.map(({ data }) => Object(data).email)).toEqual([email])
})

test('no event is lost or doubled over connections that are killed while events are written', async () => {
  const total = 60
  const headers = withKey()
  await using begun = await open(headers, '?type=subscriber.added')
  await begun.until(0)
  let lastId = begun.lastId()
  const writing = Promise.all([1, 2, 3].map(() => repeat(total / 3, happen)))
  const seen: unknown[] = []
  for (let connection = 1; seen.length < total; connection++) {
    await using stream = await open({ ...headers, 'last-event-id': lastId }, '?type=subscriber.added')
    await stream.until(Math.min(1 + (connection % 5), total - seen.length))
    stream.close()
    seen.push(...stream.events.map(({ data }) => Object(data).email))
    lastId = stream.lastId()
  }
  const written = (await writing).flat()
  expect(seen.toSorted()).toEqual(written.toSorted())
})

async function repeat<T>(times: number, make: () => Promise<T>): Promise<T[]> {
  const made: T[] = []
  while (made.length < times) made.push(await make())
  return made
}

test('one stream more than an account may have is answered 429, and says what to do', async () => {
  const streams = await Promise.all(Array.from({ length: maxStreamsPerAccount }, () => open(withKey())))
  const refused = await service.client.send('GET', '/v1/events/stream')
  expect(refused).toMatchObject({ status: 429, body: { error: { code: 'rate_limit_exceeded' } } })
  expect(refused.headers['retry-after']).toBe('15')
  expect(Object(refused.body).error.message).toMatch(/close one first/)
  await Promise.all(streams.map((stream) => stream[Symbol.asyncDispose]()))
  const statusOfNext = async () => (await service.client.send('HEAD', '/v1/events/stream')).status
  await expect.poll(statusOfNext, { timeout: patienceMs }).toBe(200)
})

test.each([
  ['x', 400, 'validation_error'],
  ['1', 400, 'validation_error'],
  [newId('event', new Date()), 422, 'event_not_found'],
])('after %j it is refused', async (id, status, code) => {
  const answer = await service.client.send('GET', '/v1/events/stream', { headers: { 'last-event-id': id } })
  expect(answer).toMatchObject({ status, body: { error: { code } } })
})

test('HEAD has the headers, and no stream', async () => {
  const answer = await service.client.send('HEAD', '/v1/events/stream')
  expect([answer.status, answer.headers['content-type'], answer.text]).toEqual([200, 'text/event-stream', ''])
})

test('a stream ends when its key is revoked or deleted', async () => {
  for (const end of ['revoke', 'delete'] as const) {
    const body = { name: 'Short', permissions: ['events:read' as const] }
    const { id, key } = await service.client.succeed(contract.apiKeys.create, { body })
    await using stream = await open(withKey(key))
    await stream.until(0)
    await service.client.succeed(contract.apiKeys[end], { params: { id }, body: {} } as never)
    expect(await stream.end()).toBe(true)
  }
})

test('a stream ends when its session ends, and when its user is no member any more', async () => {
  const signedOut = await signUp(service)
  await using first = await open(signedOut.headers())
  await first.until(0)
  await signedOut.send('DELETE', '/v1/session')
  expect(await first.end()).toBe(true)

  const [owner, removed] = [await signUp(service), await signUp(service, { role: 'viewer' })]
  await using second = await open(removed.headers())
  await second.until(0)
  await happen()
  await second.until(1)
  await owner.send('DELETE', `/v1/members/${removed.userId}`)
  expect(await second.end()).toBe(true)
})

test('a stream does not keep its session from ending when nobody uses it', async () => {
  const person = await signUp(service)
  await using stream = await open(person.headers())
  await stream.until(0)
  // A second before its end, in which there are twenty heartbeats.
  await service.database.db
    .updateTable('user_sessions')
    .set({ last_used_at: new Date(Date.now() - sessionDays.idle * 24 * 3_600_000 + 1_000) })
    .where('user_id', '=', person.userId)
    .execute()
  expect(await stream.end()).toBe(true)
})

test('a reader that closes its stream has had what it wanted: that is no request that was cut off', async () => {
  const [answered, cutOff] = [await countOfStreams('200'), await countOfStreams('aborted')]
  await using stream = await open(withKey())
  await stream.until(0)
  stream.close()
  await expect.poll(() => countOfStreams('200'), { timeout: patienceMs }).toBe(answered + 1)
  expect(await countOfStreams('aborted')).toBe(cutOff)
})

test('a page of others cannot open one with a session', async () => {
  const person = await signUp(service)
  const { 'x-postern-dashboard': _, ...headers } = person.headers()
  expect((await open(headers)).status).toBe(403)
})

test('a reader that takes nothing is cut off, and the others go on', async () => {
  const { db } = service.database
  await using other = await open(withKey(), '?type=subscriber.added')
  await other.until(0)
  const cutOff = await countOfStreams('aborted')
  const { hostname, port, host } = new URL(service.url)
  const socket = connect({ host: hostname, port: Number(port) })
  socket.write(
    `GET /v1/events/stream?type=email.bounced HTTP/1.1\r\nhost: ${host}\r\nauthorization: Bearer ${service.keys.live}\r\n\r\n`,
  )
  await once(socket, 'readable')
  // More than the buffers of the sockets hold.
  const ids = Array.from({ length: 2_000 }, () => newId('event', new Date()))
  await sql`
    WITH event AS (
      INSERT INTO events (id, account_id, mode, type, body, created_at)
      SELECT id, ${service.accountId}, 'live', 'email.bounced',
        json_build_object('id', id, 'filling', repeat('x', 20000))::text, now() FROM unnest(${ids}::text[]) id
    )
    INSERT INTO outbox (event_id, account_id, mode, type)
    SELECT id, ${service.accountId}, 'live', 'email.bounced' FROM unnest(${ids}::text[]) id
  `.execute(db)
  await expect.poll(() => countOfStreams('aborted'), { timeout: patienceMs }).toBe(cutOff + 1)
  socket.on('error', () => undefined).destroy()
  await happen()
  expect(await other.until(1)).toHaveLength(1)
})

/** Counts the requests with `GET` that have ended. */
async function countOfStreams(status: '200' | 'aborted'): Promise<number> {
  const { text } = await service.client.send('GET', '/metrics', { key: null })
  const labels = `method="GET",route="/v1/events/stream",status="${status}"`
  return Number(new RegExp(`^postern_http_requests_total\\{${labels}\\} (\\d+)`, 'm').exec(text)?.[1] ?? 0)
}

test('when the service stops, streams end at once, and in an orderly way', async () => {
  const own = await startTestService({ shutdownTimeoutSeconds: 3_600 })
  const stream = await openStream(`${own.url}/v1/events/stream`, withKey(own.keys.live))
  await stream.until(0)
  const [isOrderly] = await Promise.all([stream.end(), own.stop()])
  expect(isOrderly).toBe(true)
})
