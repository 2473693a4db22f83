import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { isThere } from '../../scripts/support/run.ts'
import { systemClock } from '../../server/lib/clock.ts'
import { newId } from '../../server/shared/ids.ts'
import { attempt } from '../../server/webhook-delivery/attempt/attempt.ts'
import { createExchange } from '../../server/webhook-delivery/attempt/exchange.ts'
import { signatureHeaders, signingKey } from '../../server/webhook-delivery/attempt/signature.ts'
import { fenceOf, root, sectionOfPages } from './document.ts'
import { freePort, type ReceiverProcess, runReceiver } from './receiver-process.ts'

/* The receivers of the documents run as they stand, and take what the service signs and nothing else. */

const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
const eventId = newId('event', systemClock.now())
// With spaces that parsing and writing again would lose: the bytes are signed, not what they mean.
const body = JSON.stringify({ id: eventId, type: 'contact.deleted', data: { name: 'Zoë' } }, null, 1)
const tampered = body.replace('deleted', 'created')

const python = (await isThere('python3', '--version')) ? 'python3' : null

const receivers = [
  { language: 'Node', program: process.execPath, block: 'js', name: 'receiver.mjs', skipped: false, reason: '' },
  {
    language: 'Python',
    program: python ?? 'python3',
    block: 'python',
    name: 'receiver.py',
    skipped: python === null,
    reason: ' (skipped: python3 is not on this machine)',
  },
]

let directory: string
const exchange = createExchange({ policy: { allowHttp: true, allowPrivateNetworks: true }, clock: systemClock })

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'postern-receivers-'))
})

afterAll(async () => {
  await exchange.close()
  await rm(directory, { recursive: true, force: true })
})

for (const { language, program, block, name, skipped, reason } of receivers) {
  describe.skipIf(skipped)(`the receiver in ${language}${skipped ? reason : ''}`, () => {
    let receiver: ReceiverProcess

    beforeAll(async () => {
      const file = join(directory, name)
      await writeFile(file, fenceOf(sectionOfPages(language), block))
      receiver = await runReceiver({ program, file, port: await freePort(), secret })
    })

    afterAll(() => receiver.stop())

    async function statusOf(request: { headers: Record<string, string>; body: string }): Promise<number | string> {
      const outcome = await exchange.send({ url: receiver.url, ...request })
      return outcome.kind === 'answered' ? outcome.status : outcome.message
    }

    test('takes a delivery that the service has signed', async () => {
      const target = {
        eventId,
        body,
        url: receiver.url,
        mode: 'live' as const,
        sample: false,
        key: signingKey(secret),
        previousKeys: [],
      }
      expect(await attempt({ exchange, clock: systemClock }, target)).toMatchObject({ kind: 'answered', status: 200 })
      await expect.poll(() => receiver.printed()).toContain(eventId)
    })

    test('refuses what is not signed so', async () => {
      const headers = signedAt(systemClock.now())
      const signature = headers['x-service-signature'] ?? ''
      const others = [
        { headers, body: tampered },
        { headers: signedAt(systemClock.now(), `${secret}x`), body },
        { headers: {}, body },
        { headers: { 'x-service-signature': '' }, body },
        { headers: { 'x-service-signature': `${signature}00` }, body },
        { headers: { 'x-service-signature': signature.slice(0, -1) }, body },
        { headers: { 'x-service-signature': 'é'.repeat(64) }, body },
      ]
      for (const request of others) expect(await statusOf(request)).toBe(401)
      expect(receiver.printed()).not.toContain('contact.created')
    })

    test('ends at its start without a secret, and says what it needs', async () => {
      const child = spawn(program, [join(directory, name)], {
        env: { PATH: process.env.PATH, PORT: String(await freePort()) },
        stdio: ['ignore', 'ignore', 'pipe'],
      })
      const [complaint, [code]] = await Promise.all([text(child.stderr), once(child, 'exit')])
      expect([code, complaint]).toEqual([1, 'Set WEBHOOK_SECRET to the secret of the webhook: whsec_…\n'])
    })

    test('goes on after all of that', async () => {
      const headers = signedAt(systemClock.now())
      expect(await statusOf({ headers, body })).toBe(200)
    })
  })
}

describe('the ready-made verifier', () => {
  const lines = fenceOf(sectionOfPages('A ready-made verifier'), 'js')

  /** Runs the lines of the page with a request at hand, and returns how that ended. */
  async function verify(request: { headers: Record<string, string>; body: string }) {
    const given = `const body = ${JSON.stringify(request.body)}, request = ${JSON.stringify({ headers: request.headers })}\n`
    const child = spawn(process.execPath, ['--input-type=module', '-'], {
      cwd: root,
      env: { WEBHOOK_SECRET: secret },
      stdio: ['pipe', 'pipe', 'pipe'],
    })
    child.stdin.end(`${given}${lines}\nconsole.log(event.type)\n`)
    const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')])
    return { stdout, stderr, code }
  }

  test('is three lines', () => {
    expect(lines.trimEnd().split('\n')).toHaveLength(3)
  })

  test('takes a delivery that the service has signed', async () => {
    const headers = signedAt(systemClock.now())
    expect(await verify({ headers, body })).toEqual({ stdout: 'contact.deleted\n', stderr: '', code: 0 })
  })

  test('refuses one that was altered, and one that is older than five minutes', async () => {
    const headers = signedAt(systemClock.now())
    expect(await verify({ headers, body: tampered })).toMatchObject({ stdout: '', code: 1 })
    const old = signedAt(new Date(systemClock.now().getTime() - 301_000))
    const recent = signedAt(new Date(systemClock.now().getTime() - 240_000))
    expect(await verify({ headers: old, body })).toMatchObject({ stdout: '', code: 1 })
    expect(await verify({ headers: recent, body })).toMatchObject({ code: 0 })
  })
})

function signedAt(timestamp: Date, by = secret) {
  return signatureHeaders({ eventId, body, timestamp, key: signingKey(by), previousKeys: [] })
}
