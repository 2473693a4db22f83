import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { campaignVerdict } from './support/campaign-evidence.ts'
import { everyFeature, pickFeatures } from './support/campaign-features.ts'
import { beside, meddle } from './support/campaign-meddler.ts'
import { type CampaignStage, type CampaignTrial, setCampaignStage } from './support/campaign-stage.ts'
import { type Postgres, startPostgres } from './support/postgres.ts'
import { rounds, within } from './support/rounds.ts'
import { randomOfTest } from './support/seeded-random.ts'

let postgres: Postgres
let stage: CampaignStage

beforeEach(async () => {
  postgres = await startPostgres()
  stage = await setCampaignStage({ ...postgres, env: { MAIL_CONNECTIONS_PER_HOST: '10' } })
})
afterEach(async () => {
  await stage[Symbol.asyncDispose]()
  await postgres[Symbol.asyncDispose]()
})

const kills = rounds({ short: 1, long: 20 })
const people = rounds({ short: 210, long: 650 })
/** PostgreSQL is killed this long after a campaign was sent or it was started again, at most. Milliseconds. */
const longestLifeMs = 700
/** The mail server takes this long to answer a message, at most. Milliseconds. */
const longestAnswerMs = 40

/** Milliseconds between two looks for A/B tests, throttles and retries whose time passes. */
const passingMs = 20

// The service lives through it all, and has what it sent in hand until it is written down.
test(`each person gets a campaign once when PostgreSQL is killed ${kills} times`, within(kills), async () => {
  const random = randomOfTest(20_260_303)
  const [campaigns, changing] = [random.fork(), random.fork()]
  stage.mail.server.at('message', () => delay(Math.random() * longestAnswerMs, undefined))
  const trials: CampaignTrial[] = []
  for (let killed = 0; killed < kills; ) {
    const last = trials.at(-1)
    const isNext = last === undefined || (await stage.statusOf(last)) === 'completed'
    const features = last === undefined ? everyFeature(campaigns) : pickFeatures(campaigns)
    const trial = isNext ? await stage.begin({ people, features }) : last
    if (isNext) trials.push(trial)
    await beside(
      async (signal) => {
        await Promise.all([meddle(stage, trial, { random: changing, signal }), passTime(signal)])
      },
      async () => {
        await delay(random.number(longestLifeMs))
        await postgres.kill()
        await postgres.restart()
      },
    )
    // A process takes the work that it had in hand when the database died again once its lease has lapsed.
    await expect
      .poll(() =>
        stage.lapseLeases().then(
          () => true,
          () => false,
        ),
      )
      .toBe(true)
    // A kill after the end of the campaign does not count.
    if ((await stage.statusOf(trial)) !== 'completed') killed += 1
  }
  // The results of the emails in hand are stored by the time the process has ended.
  stage.mail.service.child.kill('SIGTERM')
  expect(await stage.mail.service.exit).toEqual({ code: 0, signal: null })
  await stage.lapse()
  await stage.mail.restart()
  // Whom it was about to send to as the database went, nobody saw.
  expect(await campaignVerdict(stage, trials, { areLossesKnown: false })).toEqual([])
})

async function passTime(signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await Promise.all([stage.passTime(), stage.passRetries()])
    await delay(passingMs)
  }
}
