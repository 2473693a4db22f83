import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { lapseClaims } from './support/claims.ts'
import { type MailStage, setMailStage } from './support/mail-stage.ts'
import { type Postgres, startPostgres } from './support/postgres.ts'
import { rounds, within } from './support/rounds.ts'

let postgres: Postgres
let stage: MailStage

beforeEach(async () => {
  postgres = await startPostgres()
  stage = await setMailStage(postgres)
})
afterEach(async () => {
  await stage[Symbol.asyncDispose]()
  await postgres[Symbol.asyncDispose]()
})

const kills = rounds({ short: 1, long: 20 })
/** PostgreSQL is killed this long after emails were taken again, at most. Milliseconds. */
const longestLifeMs = 600
/** Who send at once without an idempotency key, and share transactions therefore. */
const careless = { repeats: false, writers: 8 }
/** The mail server takes this long to answer a message, at most. Milliseconds. */
const longestAnswerMs = 100

// The service lives through it all, and has what it sent in hand until it is written down.
test(`no recipient is lost when PostgreSQL is killed ${kills} times under load`, within(kills), async () => {
  stage.server.at('message', () => delay(Math.random() * longestAnswerMs, undefined))
  await using load = stage.startLoad()
  await using sharing = stage.startLoad(careless)
  for (let kill = 1; kill <= kills; kill++) {
    await Promise.all([load.acknowledged(5), sharing.acknowledged(5)])
    await delay(Math.random() * longestLifeMs)
    await postgres.kill()
    await load.refused(1)
    await postgres.restart()
  }
  await Promise.all([load.acknowledged(20), sharing.acknowledged(20)])
  await Promise.all([load.stop(), sharing.stop()])
  // Only after the process has ended is it certain which results it has stored.
  stage.service.child.kill('SIGTERM')
  expect(await stage.service.exit).toEqual({ code: 0, signal: null })
  await lapseClaims(stage)
  await stage.restart()
  // Whom it was about to send to as the database went, nobody saw.
  expect(await stage.verdict({ areLossesKnown: false })).toEqual([])
  expect(await stage.shared()).toBeGreaterThan(0)
  const copies = stage.server.messages.map(({ recipients }) => recipients[0]?.address)
  expect(new Set(copies).size).toBe(copies.length)
})
