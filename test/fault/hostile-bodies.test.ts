import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { type HostileRequest, hostileRequests, type Shape } from '../../scripts/support/hostile-bodies.ts'
import { publishedSpec } from '../support/published-spec.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { rounds, within } from './support/rounds.ts'

/*
 * The largest body of every route, each string of it in several shapes. Nobody else waits for it, and nobody but
 * its sender is told of it.
 */

const sizes = {
  usual: rounds({ short: 65_536, long: 1_048_576 }),
  large: rounds({ short: 262_144, long: 62_914_560 }),
}

const requests = hostileRequests(publishedSpec, sizes)
const byOperation = [...Map.groupBy(requests, ({ method, path }) => `${method} ${path}`)]

let service: TestService

beforeAll(async () => {
  service = await startTestService({
    roles: { worker: false },
    maxBodyBytes: sizes.usual,
    maxEmailBodyBytes: sizes.large,
  })
})
// It throws where the service has logged an error.
afterAll(() => service?.stop())

type Asked = Pick<HostileRequest, 'method' | 'path' | 'body'>

const asJson = { 'content-type': 'application/json' }

/** Asks whether the process lives, or something for another account, in turn. */
async function expectOtherServed(turn: number): Promise<void> {
  const other = service.client.as(service.keys.other)
  expect((await other.send('GET', turn % 2 === 0 ? '/healthz' : '/v1/subscribers')).status).toBe(200)
}

function isRefusalOrTaken(status: number): boolean {
  return (status >= 200 && status < 300) || (status >= 400 && status < 500)
}

test('the published spec has as many fields as are tried', () => {
  expect(byOperation.length).toBeGreaterThan(15)
  expect(requests.length).toBeGreaterThan(700)
  expect(requests.filter(({ isLarge }) => isLarge).length).toBeGreaterThan(300)
})

test.each(byOperation)(
  '%s: whatever its fields hold, it is answered, and others beside it',
  within(60),
  async (_, all) => {
    // Who is answered first is shown below: a body of this size is often read before the other request has come.
    // With a test key, which nothing is sent with.
    const client = service.client.as(service.keys.test)
    for (const [turn, { name, method, path, body }] of all.entries()) {
      const sent = body()
      expect(sent.length).toBeGreaterThan(0)
      const [{ status }] = await Promise.all([
        client.send(method, path, { raw: sent, headers: asJson }),
        expectOtherServed(turn),
      ])
      expect(isRefusalOrTaken(status), `${name}: ${status}`).toBe(true)
    }
  },
)

describe('while the largest email is read', () => {
  const bytes = 25_165_824
  const large = hostileRequests(publishedSpec, { usual: 1_000, large: bytes })
  /*
   * Every string field, in the dearest shapes: of 25 MB, a repeated parameter took a median of 518 ms and a wide
   * character 492 ms, the others less; the long round tries all that are one string. Lists and nesting are refused as
   * they are read, after a median of 9 to 83 ms: nobody has to be answered before that. Smaller bodies, and the same
   * fields of a batch, would show nothing more.
   */
  const dearest: Shape[] = ['a repeated parameter', 'one wide character among narrow ones']
  const tried: readonly Shape[] = rounds({
    short: dearest,
    long: [...dearest, 'one character', 'a repeated word', 'surrogate pairs in escapes', 'escaped quotation marks'],
  })
  const chosen = large.filter(
    ({ name }) => name.startsWith('sendEmail ') && tried.some((shape) => name.endsWith(`: ${shape}`)),
  )
  /** The requests that are sent one after the other while the hostile request is processed. */
  const others = ['health', 'another account', 'health'] as const
  let roomy: TestService

  beforeAll(async () => {
    roomy = await startTestService({ roles: { worker: false }, maxEmailBodyBytes: bytes })
  })
  afterAll(() => roomy?.stop())

  test('the largest email is tried with at least 20 fields, each in as many shapes as the round has', () => {
    expect(chosen.length).toBeGreaterThanOrEqual(20 * rounds({ short: 1, long: 6 }))
  })

  test.each(chosen.map((request) => [request.name, request] as const))(
    'others are answered first while the largest email is read: %s',
    async (_, request) => {
      const order = await answersBesides(request)
      expect(order).toEqual([...others, 'hostile'])
    },
  )

  test('a large email with long HTML and a large file is taken, and shown, and others are answered first', async () => {
    const email = {
      from: 'a@example.com',
      to: 'b@example.org',
      subject: 'Large',
      html: '<p>"Größe" 😀</p>\n'.repeat(300_000),
      attachments: [{ filename: 'a.bin', content: randomBytes(12_000_000).toString('base64') }],
    }
    const sent = Buffer.from(JSON.stringify(email))
    expect(sent.length).toBeLessThan(bytes)
    const order = await answersBesides({ method: 'POST', path: '/v1/emails', body: () => sent }, 202)
    expect(order).toEqual([...others, 'hostile'])

    const client = roomy.client.as(roomy.keys.test)
    const { body: list } = await client.send('GET', '/v1/emails?limit=1')
    const [{ id }] = Object(list).data
    const shown = await orderBesides({ start: (hostile) => hostile.write(headOf('GET', `/v1/emails/${id}`)) }, 200)
    expect(shown).toEqual([...others, 'hostile'])
    const { status, body } = await client.send('GET', `/v1/emails/${id}`)
    expect(status).toBe(200)
    expect(Object(body).html === email.html).toBe(true)
    expect(body).toMatchObject({ id, attachments: [{ filename: 'a.bin', size: 12_000_000 }] })
  })

  function headOf(method: string, path: string, length?: number): string {
    const about = length === undefined ? '' : `Content-Type: application/json\r\nContent-Length: ${length}\r\n`
    return `${method} ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${roomy.keys.test}\r\n${about}\r\n`
  }

  /** Returns the order of the responses after the last byte of the hostile request was sent. */
  function answersBesides({ method, path, body }: Asked, expected?: number): Promise<string[]> {
    const sent = body()
    return orderBesides(
      {
        async prepare(hostile) {
          hostile.write(headOf(method, path, sent.length))
          await new Promise((resolve) => hostile.write(sent.subarray(0, -1), resolve))
        },
        start: (hostile) => hostile.write(sent.subarray(-1)),
      },
      expected,
    )
  }

  /** Returns the order of the responses after `start`. That to the hostile request counts when it is complete. */
  async function orderBesides(
    { prepare, start }: { prepare?: (hostile: Socket) => Promise<void>; start: (hostile: Socket) => void },
    expected?: number,
  ): Promise<string[]> {
    const order: string[] = []
    const port = Number(new URL(roomy.url).port)
    const hostile = connect(port, '127.0.0.1')
    const other = connect(port, '127.0.0.1')
    onTestFinished(() => {
      hostile.destroy()
      other.destroy()
    })
    const ask = async (what: (typeof others)[number]) => {
      const path = what === 'health' ? '/healthz' : '/v1/subscribers?limit=1'
      other.write(`GET ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${roomy.keys.other}\r\n\r\n`)
      expect(String((await once(other, 'data'))[0])).toMatch(/^HTTP\/1\.1 200 /)
    }
    await prepare?.(hostile)
    // Meanwhile the service reads what has come.
    for (let asked = 0; asked < 50; asked++) await ask(asked % 2 === 0 ? 'health' : 'another account')
    const answered = endOfAnswer(hostile).then((status) => {
      if (expected === undefined) expect(status).toMatch(/^[24]\d\d$/)
      else expect(status).toBe(String(expected))
      order.push('hostile')
    })
    start(hostile)
    for (const what of others) {
      await ask(what)
      order.push(what)
    }
    await answered
    return order
  }
})

/** The status of an answer, once all of it has come: in chunks, or short. */
async function endOfAnswer(socket: Socket): Promise<string | undefined> {
  let head = ''
  let end = ''
  for await (const bytes of socket.iterator({ destroyOnReturn: false })) {
    const text = bytes.toString('latin1')
    head ||= text
    // The last chunk may come in pieces.
    end = (end + text).slice(-lastChunk.length)
    if (!head.includes('Transfer-Encoding: chunked') || end === lastChunk) break
  }
  return /^HTTP\/1\.1 (\d{3}) /.exec(head)?.[1]
}

const lastChunk = '\r\n0\r\n\r\n'
