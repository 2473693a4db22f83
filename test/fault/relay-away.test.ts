import { afterEach, beforeEach, expect, test } from 'vitest'
import { type MailEngine, startMailEngine } from '../support/mail-engine.ts'
import { patienceMs } from '../support/patience.ts'
import { type ScriptedSmtp, startScriptedSmtp } from '../support/scripted-smtp.ts'
import type { SmtpReaction } from '../support/scripted-smtp-session.ts'
import { rounds, within } from './support/rounds.ts'

/* A relay goes away and comes back, with restarts of the service between: every email arrives once, at attempt 1. */

let relay: ScriptedSmtp
let engine: MailEngine

beforeEach(async () => {
  relay = await startScriptedSmtp()
  const { port } = relay
  engine = await startMailEngine({
    port,
    to: { kind: 'relay', relay: { host: '127.0.0.1', port, tls: 'opportunistic', credentials: null } },
  })
})
afterEach(async () => {
  await engine[Symbol.asyncDispose]()
  await relay.stop()
})

const isSent = ({ status }: { status: string }) => status === 'sent'
/** As long as it takes at most until one conversation tries again. Seconds. */
const longestPause = 16

/** How a relay is away. */
const absences: readonly SmtpReaction[] = [
  { reply: '421 4.3.2 Going down', next: 'drop' },
  { reply: '554 5.3.2 Not now', next: 'drop' },
  { next: 'reset' },
]

const times = rounds({ short: 3, long: 60 })

test(
  `what is sent while a relay is away leaves once and at its first attempt, ${times} times`,
  within(times),
  async () => {
    const { port } = relay
    for (let time = 0; time < times; time++) {
      const absence = absences[time % (absences.length + 1)]
      if (absence === undefined) await relay.stop()
      else relay.at('connect', absence)
      relay.dropAll()
      const ids: string[] = []
      for (let n = 0; n < 20; n++) ids.push(await engine.send({ to: [`n${n}@round${time}.test`] }))
      await expect.poll(() => engine.unusable).toBe(1)
      await engine.advance(10 + 3_600 * (time % 5))
      if (time % 2 === 1) {
        await engine.stopWorker(1_000)
        engine.startWorker()
      }
      const before = relay.messages.length
      if (absence === undefined) relay = await startScriptedSmtp({ port })
      else relay.at('connect', () => undefined)
      const { messages } = relay
      await engine.advance(longestPause)
      // Time goes on: an email that found no connection free waits 250 ms, and what failed just before tries again.
      const unsent = async () => {
        await engine.advance(1)
        return engine.db.selectFrom('emails').select('id').where('status', '!=', 'sent').execute()
      }
      await expect.poll(unsent, { timeout: patienceMs }).toEqual([])
      for (const id of ids) expect(await engine.statusOf(id, isSent)).toMatchObject({ attempts: [1] })
      const arrived = messages.slice(absence === undefined ? 0 : before).flatMap(({ recipients }) => recipients)
      expect(arrived.map(({ address }) => address).sort()).toEqual(ids.map((_, n) => `n${n}@round${time}.test`).sort())
    }
  },
)
