import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { ServiceProcess } from '../main/service-process.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { campaignVerdict } from './support/campaign-evidence.ts'
import { everyFeature, pickFeatures } from './support/campaign-features.ts'
import { beside, cancel, goOn, meddle, pauseAndResume, tryToCancel, watchPause } from './support/campaign-meddler.ts'
import { type CampaignStage, type CampaignTrial, hoursOfDay, setCampaignStage } from './support/campaign-stage.ts'
import { rounds, within } from './support/rounds.ts'
import { type Random, randomOfTest } from './support/seeded-random.ts'

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

/** A process is killed this long after it is ready, or after so many messages, at most. */
const longestLifeMs = 500
const longestLifeMessages = 80
/** Milliseconds between two looks for A/B tests, throttles and retries whose time passes. */
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
  const passing = setInterval(() => void Promise.all([stage.passTime(), stage.passRetries()]), passingMs)
  const kind = random.pick(['time', 'message', 'change'] as const)
  const [messages, lifeMs] = [random.int(longestLifeMessages), random.number(longestLifeMs)]
  const answers = random.fork()
  let left = kind === 'message' ? messages : Number.POSITIVE_INFINITY
  stage.mail.server.at('message', () => {
    if (left-- === 0) resolve()
    return delay(answers.number(longestAnswerMs), undefined)
  })
  if (kind === 'change') void stage.untilChanged(trial, 4 * longestLifeMs).then(resolve)
  // Also where the campaign has no such message.
  else setTimeout(resolve, kind === 'time' ? lifeMs : 4 * longestLifeMs)
  return promise.finally(() => clearInterval(passing))
}

/**
 * Sends a campaign, now or in a moment, so that kills fall on all there is between schedule and completion. The first
 * of a test has all features, so that a short round has them too.
 */
const beginOne = (random: Random, isFirst: boolean) =>
  stage.begin({
    people,
    features: isFirst ? everyFeature(random) : pickFeatures(random),
    ...(random.int(2) === 0 && { inMs: 1_000 + random.int(longestLifeMs) }),
  })

const hasEnded = async (trial: CampaignTrial) => ['completed', 'canceled'].includes(await stage.statusOf(trial))

/** Returns the campaign that is under way: the last one, or a new one where that has ended. */
async function underWay(
  trials: CampaignTrial[],
  begin: (isFirst: boolean) => Promise<CampaignTrial>,
): Promise<CampaignTrial> {
  const last = trials.at(-1)
  if (last !== undefined && !(await hasEnded(last))) return last
  const next = await begin(last === undefined)
  trials.push(next)
  return next
}

/** Kills the service at a random moment. Returns how many kills that is: none when the campaign had ended before. */
async function killOnce(trial: CampaignTrial, random: Random): Promise<number> {
  await killPoint(trial, random)
  await stage.mail.kill()
  return (await hasEnded(trial)) ? 0 : 1
}

const kills = rounds({ short: 1, long: 100 })

test(`each person gets a campaign once when the service is killed ${kills} times`, within(kills), async () => {
  const random = randomOfTest(20_260_301)
  const campaigns = random.fork()
  const trials: CampaignTrial[] = []
  for (let killed = 0; killed < kills; ) {
    const trial = await underWay(trials, (isFirst) => beginOne(campaigns, isFirst))
    killed += await killOnce(trial, random)
    await stage.lapse()
    await stage.mail.restart()
  }
  stage.mail.server.at('message', () => undefined)
  expect(await campaignVerdict(stage, trials)).toEqual([])
})

const changes = rounds({ short: 2, long: 40 })
/** A process that finds a campaign paused has it so for this long after its start, at most. Milliseconds. */
const longestPauseMs = 300

test(
  `people leave, join and are suppressed while the service is killed ${changes} times`,
  within(changes),
  async () => {
    const random = randomOfTest(20_260_302)
    const [campaigns, changing, pausing] = [random.fork(), random.fork(), random.fork()]
    const trials: CampaignTrial[] = []
    for (let killed = 0; killed < changes; ) {
      const trial = await underWay(trials, (isFirst) => beginOne(campaigns, isFirst))
      await beside(
        async (signal) => {
          await Promise.all([
            meddle(stage, trial, { random: changing, signal }),
            pauseAndResume(stage, trial, { random: pausing, signal }),
          ])
        },
        async () => {
          killed += await killOnce(trial, random)
        },
      )
      await stage.lapse()
      await watchPause(stage, trial, async () => {
        await stage.mail.restart()
        await delay(pausing.number(longestPauseMs))
      })
      await goOn(stage, trial)
      // The first, and some after it, are canceled at last.
      if (killed % 4 === 1) await cancel(stage, trial)
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
    const random = randomOfTest(20_260_304)
    const [campaigns, hours] = [random.fork(), random.fork()]
    const begin = (isFirst: boolean) =>
      stage.begin({
        people,
        // An A/B test has no local time.
        features: { ...(isFirst ? everyFeature(campaigns) : pickFeatures(campaigns)), hasVariants: false },
        inMs: shortestLocalMs + campaigns.int(longestLifeMs),
        isLocal: true,
        fields: { sendWindow: hoursOfDay(true) },
      })
    const trials: CampaignTrial[] = []
    for (let killed = 0; killed < days; ) {
      const trial = await underWay(trials, begin)
      await beside(
        async (signal) => {
          for (let areNow = false; !signal.aborted; areNow = !areNow) {
            await stage.setHours(trial, areNow)
            await delay(hours.number(longestHoursMs))
            await stage.lapseLeases()
          }
        },
        async () => {
          killed += await killOnce(trial, random)
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

/** Has both of two workers have a campaign in hand all the time, as if no lease was ever long enough. */
async function lapseAllTheTime(signal: AbortSignal): Promise<void> {
  while (!signal.aborted) await stage.lapseLeases().then(() => delay(leaseMs))
}

const switches = rounds({ short: 2, long: 40 })
/** A process is killed this long after a request to cancel a campaign, at most. Milliseconds. */
const longestCancelMs = 30

/** Asks to cancel a campaign, and kills a process before, while or after that is done. */
async function killInCancel(trial: CampaignTrial, dying: ServiceProcess, random: Random): Promise<void> {
  const kill = delay(random.number(longestCancelMs)).then(() => dying.child.kill('SIGKILL'))
  await Promise.all([tryToCancel(stage, trial), kill])
}

test(
  `two workers write to each person once when one of them is killed ${switches} times`,
  within(switches),
  async () => {
    const random = randomOfTest(20_260_303)
    const [campaigns, changing, pausing] = [random.fork(), random.fork(), random.fork()]
    const beginWorker = () => stage.mail.startBeside()
    let other = await beginWorker()
    const trials: CampaignTrial[] = []
    try {
      for (let killed = 0; killed < switches; ) {
        const trial = await underWay(trials, (isFirst) => beginOne(campaigns, isFirst))
        const isOther = random.int(2) === 0
        const dying = isOther ? other : stage.mail.service
        await beside(
          async (signal) => {
            await Promise.all([
              meddle(stage, trial, { random: changing, signal }),
              pauseAndResume(stage, trial, { random: pausing, signal }),
              lapseAllTheTime(signal),
            ])
          },
          async () => {
            await killPoint(trial, random)
            const isUnderWay = !(await hasEnded(trial))
            // The second kill, and some after it.
            if (isUnderWay && killed % 4 === 1) await killInCancel(trial, dying, random)
            else dying.child.kill('SIGKILL')
            await dying.exit
            if (isUnderWay) killed += 1
          },
        )
        if (isOther) other = await beginWorker()
        else await stage.mail.restart()
        // Of emails the claims of the dead lapse by themselves, while the other lives.
        await stage.lapseLeases()
        await goOn(stage, trial)
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
