import { once } from 'node:events'
import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { type HostileRequest, hostileRequests } from '../../scripts/support/hostile-bodies.ts'
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
  const chosen = large.filter(({ name }) =>
    /^sendEmail (subject|html|attachments\.0\.content|attachments\.0\.contentType|headers\.X-Name|unknown): (one character|surrogate pairs in escapes|a repeated parameter)$/.test(
      name,
    ),
  )
  let roomy: TestService

  beforeAll(async () => {
    roomy = await startTestService({ roles: { worker: false }, maxEmailBodyBytes: bytes })
  })
  afterAll(() => roomy?.stop())

  test('several fields and shapes are tried', () => {
    expect(chosen).toHaveLength(18)
  })

  test.each(chosen.map((request) => [request.name, request] as const))(
    '%s, others are answered first',
    async (_, request) => {
      const order = await answersBesides(request)
      expect(order).toEqual(['health', 'health', 'health', 'hostile'])
    },
  )

  /** What was answered in which order, once the last byte of the request had come. */
  async function answersBesides({ method, path, body }: HostileRequest): Promise<string[]> {
    const order: string[] = []
    const port = Number(new URL(roomy.url).port)
    const hostile = connect(port, '127.0.0.1')
    const other = connect(port, '127.0.0.1')
    onTestFinished(() => {
      hostile.destroy()
      other.destroy()
    })
    const sent = body()
    hostile.write(
      `${method} ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${roomy.keys.test}\r\nContent-Type: application/json\r\nContent-Length: ${sent.length}\r\n\r\n`,
    )
    await new Promise((resolve) => hostile.write(sent.subarray(0, -1), resolve))
    const ask = async () => {
      other.write('GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n')
      expect(String((await once(other, 'data'))[0])).toMatch(/^HTTP\/1\.1 200 /)
    }
    // Meanwhile the service reads what has come.
    for (let asked = 0; asked < 50; asked++) await ask()
    const answered = once(hostile, 'data').then(([answer]) => {
      expect(String(answer)).toMatch(/^HTTP\/1\.1 [24]\d\d /)
      order.push('hostile')
    })
    hostile.write(sent.subarray(-1))
    for (let asked = 0; asked < 3; asked++) {
      await ask()
      order.push('health')
    }
    await answered
    return order
  }
})
