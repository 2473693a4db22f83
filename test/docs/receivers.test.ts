import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { freePort } from '../../scripts/support/free-port.ts'
import { isThere, run } from '../../scripts/support/run.ts'
import { systemClock } from '../../server/lib/clock.ts'
import { newId } from '../../server/shared/ids.ts'
import { attempt } from '../../server/webhook-delivery/attempt/attempt.ts'
import { createExchange } from '../../server/webhook-delivery/attempt/exchange.ts'
import { signatureHeaders, signingKey } from '../../server/webhook-delivery/attempt/signature.ts'
import { fenceOf, root, sectionOfPages } from './document.ts'
import { type ReceiverProcess, runReceiver } from './receiver-process.ts'

/* The receivers of the documents run as they stand, and take what the service signs and nothing else. */

const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
const otherSecret = `whsec_${Buffer.alloc(32, 8).toString('base64')}`
const complaint = 'Set WEBHOOK_SECRET to the secret of the webhook: whsec_…'

type Command = { program: string; file: string }

type Receiver = {
  language: string
  /** The fence it stands in. */
  block: string
  name: string
  /** The command that shows whether it can be run here. */
  needs: readonly [program: string, ...args: string[]]
  /** How the saved file is run. Default: by the program it needs. */
  commandOf?: (file: string) => Promise<Command>
  /** Whether it verifies `X-Service-Signature` alone, and does nothing of the rest. */
  isShortest?: boolean
  /** Whether it lacks a start of its own, so that it says at the first request what it needs. */
  isRunByServer?: boolean
  /** Why it is run with `CI=true` only. Default: it is run wherever its language is. */
  onlyInCi?: string
}

const receivers: readonly Receiver[] = [
  {
    language: 'Node',
    block: 'js',
    name: 'shortest.mjs',
    needs: [process.execPath, '--version'],
    isShortest: true,
  },
  { language: 'Node', block: 'javascript', name: 'receiver.mjs', needs: [process.execPath, '--version'] },
  { language: 'Python', block: 'python', name: 'receiver.py', needs: ['python3', '--version'] },
  {
    language: 'Go',
    block: 'go',
    name: 'receiver.go',
    needs: ['go', 'version'],
    onlyInCi: 'compiling its standard library takes half a minute, once',
    async commandOf(file) {
      const program = `${file}.built`
      await run('go', ['build', '-o', program, file], { quiet: true, env: { ...process.env, GOTOOLCHAIN: 'local' } })
      return { program, file }
    },
  },
  {
    language: 'PHP',
    block: 'php',
    name: 'receiver.php',
    needs: ['php', '--version'],
    isRunByServer: true,
    async commandOf(file) {
      const script = `${file}.sh`
      await writeFile(script, `exec php -d sys_temp_dir='${directory}' -S "127.0.0.1:$PORT" '${file}'\n`)
      return { program: '/bin/sh', file: script }
    },
  },
  { language: 'Ruby', block: 'ruby', name: 'receiver.rb', needs: ['ruby', '-rwebrick', '-e', ''] },
]

/** Why a receiver is not run here; null: it is. `.ci/run` tells of those in its closing lines. */
async function whySkipped({ language, needs, onlyInCi }: Receiver): Promise<string | null> {
  if (onlyInCi !== undefined && process.env.CI !== 'true') return `not without CI=true: ${onlyInCi}`
  if (await isThere(...needs)) return null
  const list = process.env.SKIPPED_JUDGES
  if (list !== undefined) appendFileSync(list, `the receiver in ${language} (needs ${needs.join(' ')})\n`)
  return `"${needs.join(' ')}" does not run on this machine`
}

const reasons = await Promise.all(receivers.map(whySkipped))

let directory: string
const exchange = createExchange({ policy: { allowHttp: true, allowPrivateNetworks: true }, clock: systemClock })

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'postern-receivers-'))
})

afterAll(async () => {
  await exchange.close()
  await rm(directory, { recursive: true, force: true })
})

/** An event with spaces that parsing and writing again would lose: the bytes are signed, not what they mean. */
function newEvent() {
  const eventId = newId('event', systemClock.now())
  return { eventId, body: JSON.stringify({ id: eventId, type: 'contact.deleted', data: { name: 'Zoë' } }, null, 1) }
}

type Event = ReturnType<typeof newEvent>

function signed(event: Event, { at = systemClock.now(), by = secret, also = [] as string[] } = {}) {
  return signatureHeaders({ ...event, timestamp: at, key: signingKey(by), previousKeys: also.map(signingKey) })
}

function secondsAgo(seconds: number): Date {
  return new Date(systemClock.now().getTime() - seconds * 1_000)
}

for (const [index, { language, block, name, needs, commandOf, isShortest, isRunByServer }] of receivers.entries()) {
  const reason = reasons[index] ?? null
  const title = `the ${isShortest ? 'shortest ' : ''}receiver in ${language}`
  describe.skipIf(reason !== null)(reason === null ? title : `${title} (skipped: ${reason})`, () => {
    let command: Command
    let receiver: ReceiverProcess

    // A Go program is compiled first, with its standard library where that was never compiled here.
    beforeAll(async () => {
      const file = join(directory, name)
      await writeFile(file, fenceOf(sectionOfPages(language), block))
      command = commandOf === undefined ? { program: needs[0], file } : await commandOf(file)
      receiver = await runReceiver({ ...command, port: await freePort(), secret })
    }, 120_000)

    afterAll(() => receiver.stop())

    async function statusOf(request: { headers: Record<string, string>; body: string }): Promise<number | string> {
      const outcome = await exchange.send({ url: receiver.url, ...request })
      return outcome.kind === 'answered' ? outcome.status : outcome.message
    }

    /** How often the receiver has handled an event, once it has handled one that came after it. */
    async function timesHandled({ eventId }: Event): Promise<number> {
      const later = newEvent()
      expect(await statusOf({ headers: signed(later), body: later.body })).toBe(200)
      await expect.poll(() => receiver.printed()).toContain(later.eventId)
      return receiver.printed().split(eventId).length - 1
    }

    test('a receiver takes a delivery that the service has signed', async () => {
      const event = newEvent()
      const target = {
        ...event,
        url: receiver.url,
        mode: 'live' as const,
        sample: false,
        key: signingKey(secret),
        previousKeys: [],
      }
      expect(await attempt({ exchange, clock: systemClock }, target)).toMatchObject({ kind: 'answered', status: 200 })
      await expect.poll(() => receiver.printed()).toContain(event.eventId)
    })

    if (isShortest)
      test('a receiver refuses other values of X-Service-Signature', async () => {
        const event = newEvent()
        const signature = signed(event)['x-service-signature'] ?? ''
        const others = [
          '',
          `${signature}00`,
          signature.slice(0, -1),
          'é'.repeat(64),
          signed(event, { by: otherSecret }),
        ]
        for (const other of others) {
          const headers = typeof other === 'string' ? { 'x-service-signature': other } : other
          expect(await statusOf({ headers, body: event.body })).toBe(401)
        }
        expect(await statusOf({ headers: {}, body: event.body })).toBe(401)
        expect(await statusOf({ headers: signed(event), body: event.body.replace('deleted', 'created') })).toBe(401)
        expect(await timesHandled(event)).toBe(0)
      })

    if (!isShortest) {
      test('a receiver by webhook-signature refuses what is not signed so', async () => {
        const event = newEvent()
        const { body } = event
        const headers = signed(event)
        const signature = headers['webhook-signature'] ?? ''
        const others: { headers: Record<string, string>; body: string }[] = [
          { headers, body: body.replace('deleted', 'created') },
          { headers, body: `${body}\n` },
          { headers: signed(event, { by: otherSecret }), body },
          { headers: {}, body },
          { headers: { 'x-service-signature': headers['x-service-signature'] ?? '' }, body },
          { headers: { ...headers, 'webhook-id': newEvent().eventId }, body },
          { headers: { ...headers, 'webhook-timestamp': String(Number(headers['webhook-timestamp']) + 1) }, body },
          { headers: { ...headers, 'webhook-timestamp': 'now' }, body },
          { headers: { ...headers, 'webhook-timestamp': '' }, body },
          ...['', 'v1,', signature.slice('v1,'.length), `${signature}A`, signature.slice(0, -1), 'é'.repeat(47)].map(
            (other) => ({ headers: { ...headers, 'webhook-signature': other }, body }),
          ),
        ]
        for (const request of others) expect(await statusOf(request)).toBe(401)
        expect(await timesHandled(event)).toBe(0)
      })

      test('a receiver by webhook-signature refuses a delivery that was signed more than five minutes ago, or as much too early', async () => {
        const event = newEvent()
        for (const seconds of [310, 86_400, -310]) {
          const headers = signed(event, { at: secondsAgo(seconds) })
          expect(await statusOf({ headers, body: event.body })).toBe(401)
        }
        expect(await timesHandled(event)).toBe(0)
        expect(await statusOf({ headers: signed(event, { at: secondsAgo(240) }), body: event.body })).toBe(200)
        expect(await timesHandled(event)).toBe(1)
      })

      test('a receiver by webhook-signature takes what is signed with several secrets, whichever of them is its own', async () => {
        for (const secrets of [
          { by: otherSecret, also: [secret] },
          { by: secret, also: [otherSecret] },
        ]) {
          const event = newEvent()
          expect(await statusOf({ headers: signed(event, secrets), body: event.body })).toBe(200)
          expect(await timesHandled(event)).toBe(1)
        }
      })

      test('a receiver by webhook-signature handles an event once that comes three times, and answers 200 each time', async () => {
        const event = newEvent()
        for (const at of [secondsAgo(60), secondsAgo(60), secondsAgo(0)]) {
          expect(await statusOf({ headers: signed(event, { at }), body: event.body })).toBe(200)
        }
        expect(await timesHandled(event)).toBe(1)
      })
    }

    if (!isRunByServer)
      test('a receiver ends at its start without a secret, and says what it needs', async () => {
        const child = spawn(command.program, [command.file], {
          env: { PATH: process.env.PATH, PORT: String(await freePort()) },
          stdio: ['ignore', 'ignore', 'pipe'],
        })
        const [complaints, [code]] = await Promise.all([text(child.stderr), once(child, 'exit')])
        expect([code, complaints]).toEqual([1, `${complaint}\n`])
      })

    if (isRunByServer)
      test('a receiver refuses every request without a secret', async () => {
        await using without = await runReceiver({ ...command, port: await freePort(), secret: '' })
        const event = newEvent()
        const outcome = await exchange.send({ url: without.url, headers: signed(event), body: event.body })
        expect(outcome).toMatchObject({ kind: 'answered', status: 500 })
      })

    test('a receiver goes on after all that it refused', async () => {
      const event = newEvent()
      expect(await statusOf({ headers: signed(event), body: event.body })).toBe(200)
    })
  })
}

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

test('the ready-made verifier is three lines', () => {
  expect(lines.trimEnd().split('\n')).toHaveLength(3)
})

test('the ready-made verifier takes a delivery that the service has signed', async () => {
  const event = newEvent()
  const request = { headers: signed(event), body: event.body }
  expect(await verify(request)).toEqual({ stdout: 'contact.deleted\n', stderr: '', code: 0 })
})

test('the ready-made verifier refuses one that was altered, and one that is older than five minutes', async () => {
  const event = newEvent()
  const { body } = event
  const altered = body.replace('deleted', 'created')
  expect(await verify({ headers: signed(event), body: altered })).toMatchObject({ stdout: '', code: 1 })
  expect(await verify({ headers: signed(event, { at: secondsAgo(301) }), body })).toMatchObject({
    stdout: '',
    code: 1,
  })
  expect(await verify({ headers: signed(event, { at: secondsAgo(240) }), body })).toMatchObject({ code: 0 })
})
