import { connect } from 'node:net'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { startTestService, type TestService } from '../support/service.ts'

/*
 * The largest queries, paths and headers, in several shapes: node takes 16 KiB of them. Each is refused, and others
 * are answered meanwhile.
 */

let service: TestService

beforeAll(async () => {
  service = await startTestService({ roles: { worker: false } })
})
// It throws where the service has logged an error.
afterAll(() => service?.stop())

/** Bytes left of 16 KiB beside the rest of a head. */
const room = 15_500
const pieces = {
  'one character': 'x',
  'a repeated group': ';a=b',
  'a repeated word': '%201:11a.',
  'percent-encodings': '%f0%9f%98%80',
  'halves of surrogate pairs': '%ed%a0%bd',
  'percent signs': '%',
  'encoded slashes': '%2f',
  dots: '/../.',
  brackets: '[',
  'plus signs': '+',
}

function fill(piece: string): string {
  return piece.repeat(Math.floor(room / piece.length))
}

function numbered(name: (index: number) => string): string {
  const all = Array.from({ length: 3_000 }, (_, index) => name(index)).join('&')
  return all.slice(0, room)
}

const requestLines: [string, string, string][] = [
  ...Object.entries(pieces).flatMap(([shape, piece]) => [
    ...['recipient', 'since', 'cursor', 'limit', 'metadata[a]', 'unknown'].map((name): [string, string, string] => [
      `${shape} in "${name}" of a query`,
      `GET /v1/emails?${name}=${fill(piece)}`,
      '',
    ]),
    ...['Idempotency-Key', 'Content-Type', 'Cookie', 'X-Forwarded-For', 'Traceparent', 'Accept', 'X-Request-Id'].map(
      (name): [string, string, string] => [
        `${shape} in the header ${name}`,
        'POST /v1/subscribers',
        `${name}: ${fill(piece)}\r\n`,
      ],
    ),
    [`${shape} as the name of a parameter`, `GET /v1/emails?${fill(piece)}`, ''] satisfies [string, string, string],
    [`${shape} as an identifier`, `GET /v1/emails/${fill(piece)}`, ''] satisfies [string, string, string],
    [`${shape} as the path`, `GET /${fill(piece)}`, ''] satisfies [string, string, string],
  ]),
  ['thousands of parameters', `GET /v1/emails?${numbered((index) => `a${index}=`)}`, ''],
  ['one parameter thousands of times', `GET /v1/emails?${fill('limit=1&')}`, ''],
  ['hundreds of pairs', `GET /v1/emails?${numbered((index) => `metadata[${index}]=`)}`, ''],
  ['parameters within each other', `GET /v1/emails?metadata${fill('[a]')}=1`, ''],
  ['a thousand headers', 'POST /v1/subscribers', 'a: b\r\n'.repeat(1_000)],
]

function headOf([, line, header]: (typeof requestLines)[number]): string {
  return `${line} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${service.keys.test}\r\n${header}\r\n`
}

const health = 'GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n'

test.each(requestLines)('%s is refused, and another beside it is answered', async (...request) => {
  const hostile = open()
  const other = open()
  const refused = statusesOf(hostile, 1)
  const answered = statusesOf(other, 1)
  hostile.write(headOf(request))
  other.write(health)
  const [[status], [ofOther]] = await Promise.all([refused, answered])
  expect(status).toBeGreaterThanOrEqual(400)
  expect(status).toBeLessThan(500)
  expect(ofOther).toBe(200)
})

function open() {
  const socket = connect(Number(new URL(service.url).port), '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  return socket
}

/** The statuses of so many answers; fewer where the connection ends before. */
function statusesOf(socket: ReturnType<typeof open>, count: number): Promise<number[]> {
  let found: number[] = []
  let text = ''
  return new Promise((resolve, reject) => {
    socket.on('data', (bytes) => {
      text += bytes.toString('latin1')
      found = [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status))
      if (found.length >= count) resolve(found)
    })
    socket.on('end', () => resolve(found))
    socket.on('error', reject)
  })
}
