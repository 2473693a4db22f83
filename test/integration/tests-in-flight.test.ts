import { type ClientRequest, request } from 'node:http'
import fc from 'fast-check'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { contract } from '../../contract/index.ts'
import { maxConcurrentTests } from '../../contract/webhooks.ts'
import { newId } from '../../server/shared/ids.ts'
import type { Answer } from '../support/client.ts'
import { deadUrl } from '../support/fixtures.ts'
import { type Behaviour, type Receiver, startReceiver } from '../support/receiver.ts'
import { startTestService, type TestService } from '../support/service.ts'

/*
 * Tests of webhooks at endpoints that hang until the test lets them answer.
 */

let service: TestService
let receiver: Receiver
/** The requests that the endpoint has not answered yet, in order of arrival. */
let held: Parameters<Behaviour>[0][]

beforeAll(async () => {
  service = await startTestService({ roles: { worker: false } })
})
afterAll(() => service?.stop())

beforeEach(async () => {
  held = []
  receiver = await startReceiver()
  receiver.respond((exchange) => held.push(exchange))
  return () => receiver.stop()
})

async function webhookAt(url: string, key = service.keys.live): Promise<string> {
  const { id } = await service.client.as(key).succeed(contract.webhooks.create, {
    body: { url, events: ['contact.created'] },
  })
  return id
}

function send(id: string, key = service.keys.live): Promise<Answer> {
  return service.client.send('POST', `/v1/webhooks/${id}/test`, { key, json: {} })
}

/** Begins a test. Resolves when its request has arrived at the endpoint; throws when it is answered before. */
async function begin(id: string, key = service.keys.live): Promise<{ answered: Promise<Answer> }> {
  const answered = send(id, key)
  const early = answered.then(({ status, text }) => expect.fail(`answered ${status}: ${text}`))
  await Promise.race([receiver.received(receiver.requests.length + 1), early])
  early.catch(() => undefined)
  return { answered }
}

const ends: Record<string, Behaviour> = {
  accepted: ({ response }) => response.writeHead(200, { connection: 'close' }).end(),
  refused: ({ response }) => response.writeHead(500, { connection: 'close' }).end(),
  cut: ({ socket }) => socket.destroy(),
}

/** Ends what hangs. */
function end(exchange: Parameters<Behaviour>[0] | undefined, how = 'accepted'): void {
  if (exchange === undefined) expect.fail('nothing hangs')
  ends[how]?.(exchange)
}

function expectRefusal(answer: Answer): void {
  expect(answer).toMatchObject({
    status: 429,
    headers: { 'retry-after': '1' },
    body: {
      error: {
        code: 'rate_limit_exceeded',
        message:
          "8 tests of the account's webhooks are in flight, which is the most at once: try again when one of them has been answered, which takes about 30 seconds at most.",
      },
    },
  })
}

test('the ninth test of an account is refused and reaches no endpoint; other accounts and processes go on', async () => {
  const id = await webhookAt(receiver.url)
  const inFlight: Promise<Answer>[] = []
  for (let count = 0; count < 8; count++) inFlight.push((await begin(id)).answered)

  await using idle = await startReceiver()
  const { keys } = service
  expectRefusal(await send(id))
  expectRefusal(await send(await webhookAt(idle.url)))
  expectRefusal(await send(await webhookAt(idle.url, keys.test), keys.test))
  expect([receiver.connections, idle.connections]).toEqual([8, 0])

  expect(await send(await webhookAt(idle.url, keys.other), keys.other)).toMatchObject({ body: { success: true } })
  const beside = await startTestService({ roles: { worker: false }, beside: service })
  const path = `/v1/webhooks/${await webhookAt(idle.url)}/test`
  expect(await beside.client.send('POST', path, { json: {} })).toMatchObject({ body: { success: true } })
  await beside.stop()

  end(held.shift())
  await Promise.race(inFlight)
  inFlight.push((await begin(id)).answered)
  expectRefusal(await send(id))
  for (const exchange of held) end(exchange)
  for (const { status } of await Promise.all(inFlight)) expect(status).toBe(200)
})

test('a test whose client has left is in flight until it ends, and then gives its place back', async () => {
  const id = await webhookAt(receiver.url)
  const clients: ClientRequest[] = []
  for (let count = 0; count < maxConcurrentTests; count++) {
    const headers = { authorization: `Bearer ${service.keys.live}` }
    const client = request(`${service.url}/v1/webhooks/${id}/test`, { method: 'POST', headers })
    client.on('error', () => undefined).end()
    clients.push(client)
  }
  await receiver.received(maxConcurrentTests)
  for (const client of clients) client.destroy()
  await expect.poll(abortedTests).toBe(maxConcurrentTests)
  expectRefusal(await send(id))
  expect(receiver.connections).toBe(maxConcurrentTests)

  for (const exchange of held.splice(0)) end(exchange)
  const inFlight: Promise<Answer>[] = []
  while (inFlight.length < maxConcurrentTests) {
    // Each gives its place back when it is settled, of which nobody is told.
    const begun = await begin(id).catch(() => null)
    if (begun !== null) inFlight.push(begun.answered)
  }
  for (const exchange of held) end(exchange)
  for (const { status } of await Promise.all(inFlight)) expect(status).toBe(200)
})

/** How many tests the service knows whose clients have left. */
async function abortedTests(): Promise<number> {
  const { text } = await service.client.send('GET', '/metrics')
  const line =
    /^postern_http_requests_total\{method="POST",route="\/v1\/webhooks\/:id\/test",status="aborted"\} (\d+)$/m
  return Number(line.exec(text)?.[1] ?? 0)
}

type Step = { do: 'begin' } | { do: 'end'; which: number; how: string } | { do: 'fail'; how: 'dead' | 'missing' }

const beginning = fc.constant<Step>({ do: 'begin' })
const ending: fc.Arbitrary<Step> = fc.record({
  do: fc.constant('end'),
  which: fc.nat({ max: maxConcurrentTests - 1 }),
  how: fc.constantFrom(...Object.keys(ends)),
})
const failing = fc.constantFrom<Step>({ do: 'fail', how: 'dead' }, { do: 'fail', how: 'missing' })
const step = fc.oneof(
  { weight: 6, arbitrary: beginning },
  { weight: 4, arbitrary: ending },
  { weight: 2, arbitrary: failing },
)

test('whatever becomes of tests, as many can be in flight as have ended, and never more than eight', async () => {
  const id = await webhookAt(receiver.url)
  const dead = await webhookAt(deadUrl)
  const run = async (steps: readonly Step[]) => {
    const before = receiver.connections
    const inFlight: { answered: Promise<Answer>; exchange: Parameters<Behaviour>[0] }[] = []
    let begun = 0
    const isFull = () => inFlight.length === maxConcurrentTests
    const beginOne = async () => {
      const { answered } = await begin(id)
      inFlight.push({ answered, exchange: held.pop() ?? expect.fail('nothing hangs') })
      begun += 1
    }
    const endOne = async (which: number, how?: string) => {
      const [ended] = inFlight.splice(which, 1)
      end(ended?.exchange, how)
      expect((await ended?.answered)?.status).toBe(200)
    }

    for (const next of steps) {
      if (next.do === 'end') {
        if (inFlight.length > 0) await endOne(next.which % inFlight.length, next.how)
      } else if (next.do === 'begin') {
        if (isFull()) expectRefusal(await send(id))
        else await beginOne()
      } else {
        const answer = await send(next.how === 'dead' ? dead : newId('webhook', new Date()))
        if (isFull()) expectRefusal(answer)
        else expect(answer.status).toBe(next.how === 'dead' ? 200 : 404)
      }
      expect(receiver.connections - before).toBe(begun)
    }
    while (!isFull()) await beginOne()
    expectRefusal(await send(id))
    while (inFlight.length > 0) await endOne(0)
  }
  await fc.assert(fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40 }), run), { numRuns: 20 })
})
