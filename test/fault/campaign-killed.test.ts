import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { campaignVerdict } from './support/campaign-evidence.ts'
import { cancel, goOn, meddle, pauseAndResume } from './support/campaign-meddler.ts'
import {
  abTest,
  type CampaignStage,
  type CampaignTrial,
  hoursOfDay,
  setCampaignStage,
} from './support/campaign-stage.ts'
import { rounds, within } from './support/rounds.ts'
import { createRandom, type Random } from './support/seeded-random.ts'

let database: TestDatabase
let stage: CampaignStage

beforeEach(async () => {
  database = await createTestDatabase()
  stage = await setCampaignStage({ ...database, env: { MAIL_CONNECTIONS_PER_HOST: '10' } })
})
afterEach(async () => {
  await stage[Symbol.asyncDispose]()
  await database.drop()
})

const seed = 20_260_301
/** A process is killed this long after it is ready, or after so many messages, at most. */
const longestLifeMs = 500
const longestLifeMessages = 80
/** Milliseconds between two looks for A/B tests whose hours pass. */
const passingMs = 20
/** The mail server takes this long to answer a message, at most. Milliseconds. */
const longestAnswerMs = 40
/** Of two workers. Milliseconds. */
const leaseMs = 5
/** More than one batch. */
const people = rounds({ short: 210, long: 650 })

/**
 * Resolves at a random moment: after a time, in the conversation about a message to come, or as soon as something has
 * been written down about the campaign.
 */
function killPoint(trial: CampaignTrial, random: Random): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  // The test of its variants is over as soon as it was sent, so that kills fall on the choice of the winner too.
  const passing = setInterval(() => void stage.passHours(), passingMs)
  const kind = random.pick(['time', 'message', 'change'] as const)
  const [messages, lifeMs] = [random.int(longestLifeMessages), random.number(longestLifeMs)]
  let left = kind === 'message' ? messages : Number.POSITIVE_INFINITY
  stage.mail.server.at('message', () => {
    if (left-- === 0) resolve()
    return delay(Math.random() * longestAnswerMs, undefined)
  })
  if (kind === 'change') void stage.untilChanged(trial, 4 * longestLifeMs).then(resolve)
  // Also where the campaign has no such message.
  else setTimeout(resolve, kind === 'time' ? lifeMs : 4 * longestLifeMs)
  return promise.finally(() => clearInterval(passing))
}

/** Does what is to be done beside a campaign until the promise is fulfilled. */
async function beside(
  work: (signal: AbortSignal) => Promise<unknown>,
  until: (end: () => void) => Promise<void>,
): Promise<void> {
  const ending = new AbortController()
  const working = work(ending.signal)
  working.catch(() => undefined)
  try {
    await until(() => ending.abort())
  } finally {
    ending.abort()
  }
  await working
}

/** Every other one tests variants, the first too. */
let begun = 0

/** Sends a campaign, now or in a moment, so that kills fall on all there is between schedule and completion. */
const beginOne = (random: Random) =>
  stage.begin({
    people,
    ...(random.int(2) === 0 && { inMs: 1_000 + random.int(longestLifeMs) }),
    ...(begun++ % 2 === 0 && { fields: { trackOpens: true, abTest } }),
  })

const hasEnded = async (trial: CampaignTrial) => ['completed', 'canceled'].includes(await stage.statusOf(trial))

const kills = rounds({ short: 1, long: 100 })

test(`each person gets a campaign once when the service is killed ${kills} times`, within(kills), async () => {
  const random = createRandom(seed)
  const trials = [await beginOne(random)]
  for (let kill = 1; kill <= kills; kill++) {
    const last = trials.at(-1)
    const trial = last === undefined || (await hasEnded(last)) ? await beginOne(random) : last
    if (trial !== last) trials.push(trial)
    await killPoint(trial, random)
    await stage.mail.kill()
    await stage.lapse()
    await stage.mail.restart()
  }
  stage.mail.server.at('message', () => undefined)
  expect(await campaignVerdict(stage, trials)).toEqual([])
})

const changes = rounds({ short: 2, long: 40 })

test(
  `people leave, join and are suppressed while the service is killed ${changes} times`,
  within(changes),
  async () => {
    const random = createRandom(seed + 1)
    const trials = [await beginOne(random)]
    for (let kill = 1; kill <= changes; kill++) {
      const last = trials.at(-1)
      const trial = last === undefined || (await hasEnded(last)) ? await beginOne(random) : last
      if (trial !== last) trials.push(trial)
      await beside(
        async (signal) => {
          await Promise.all([
            meddle(stage, trial, { random, signal }),
            pauseAndResume(stage, trial, { random, signal }),
          ])
        },
        async () => {
          await killPoint(trial, random)
          await stage.mail.kill()
        },
      )
      await stage.lapse()
      await stage.mail.restart()
      await goOn(stage, trial)
      // The first, and some after it, are canceled at last.
      if (kill % 4 === 1) await cancel(stage, trial)
    }
    stage.mail.server.at('message', () => undefined)
    expect(await campaignVerdict(stage, trials)).toEqual([])
  },
)

const days = rounds({ short: 2, long: 40 })
/** Between two changes of the hours, at most. Milliseconds. */
const longestHoursMs = 300
/** A local time is read in whole seconds, and must be in the future. Milliseconds. */
const shortestLocalMs = 3_000

test(
  `people get a campaign once that waits for local times and its hours when the service is killed ${days} times`,
  within(days),
  async () => {
    const random = createRandom(seed + 3)
    const begin = () => {
      const inMs = shortestLocalMs + random.int(longestLifeMs)
      return stage.begin({ people, inMs, isLocal: true, fields: { sendWindow: hoursOfDay(true) } })
    }
    const trials = [await begin()]
    for (let kill = 1; kill <= days; kill++) {
      const last = trials.at(-1)
      const trial = last === undefined || (await hasEnded(last)) ? await begin() : last
      if (trial !== last) trials.push(trial)
      await beside(
        async (signal) => {
          for (let areNow = false; !signal.aborted; areNow = !areNow) {
            await stage.setHours(trial, areNow)
            await delay(random.number(longestHoursMs))
            await stage.lapseLeases()
          }
        },
        async () => {
          await killPoint(trial, random)
          await stage.mail.kill()
        },
      )
      await stage.setHours(trial, true)
      await stage.lapse()
      await stage.mail.restart()
    }
    stage.mail.server.at('message', () => undefined)
    expect(await campaignVerdict(stage, trials)).toEqual([])
  },
)

const switches = rounds({ short: 1, long: 40 })

test(
  `two workers write to each person once when one of them is killed ${switches} times`,
  within(switches),
  async () => {
    const random = createRandom(seed + 2)
    const beginWorker = () => stage.mail.startBeside()
    let other = await beginWorker()
    const trials: CampaignTrial[] = []
    try {
      for (let kill = 1; kill <= switches; kill++) {
        const last = trials.at(-1)
        const trial = last === undefined || (await hasEnded(last)) ? await beginOne(random) : last
        if (trial !== last) trials.push(trial)
        await beside(
          // Both have it in hand all the time, as if no lease was ever long enough.
          async (signal) => {
            while (!signal.aborted) await stage.lapseLeases().then(() => delay(leaseMs))
          },
          () => killPoint(trial, random),
        )
        if (random.int(2) === 0) {
          other.child.kill('SIGKILL')
          await other.exit
          other = await beginWorker()
        } else {
          stage.mail.service.child.kill('SIGKILL')
          await stage.mail.service.exit
          await stage.mail.restart()
        }
        // Of emails the claims of the dead lapse by themselves, while the other lives.
        await stage.lapseLeases()
      }
      other.child.kill('SIGKILL')
      await other.exit
      await stage.mail.kill()
    } finally {
      await other[Symbol.asyncDispose]()
    }
    await stage.lapse()
    await stage.mail.restart()
    stage.mail.server.at('message', () => undefined)
    // Whom the first of two was about to write to when it was killed, nobody saw.
    expect(await campaignVerdict(stage, trials, { areLossesKnown: false })).toEqual([])
  },
)
