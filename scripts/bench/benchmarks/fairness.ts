import type { Benchmark, BenchmarkContext, Measurement, Outcome, Target } from '../benchmark.ts'
import { costsOf, inTurn, type Round, valuesOf } from '../rounds.ts'
import { median, ratio } from '../statistics.ts'
import { type Calm, type CalmCase, changesPerSecond, measureCalm, testsPerSecond } from './fairness-calm.ts'
import { createLab, floodCount, hangingCount, hostileRates } from './fairness-lab.ts'
import {
  burst,
  catchUpBoundSeconds,
  type FromBad,
  limitsMs,
  maxInFlight,
  measureCatchingUp,
  measureRecovery,
  normalMs,
  refusing,
  slow,
} from './fairness-recovery.ts'

const recoveryGoals = { failing: { atMost: 10 }, hanging: { atMost: 35 } } as const

export const fairness: Benchmark = {
  name: 'fairness',
  measures: 'calm tenants beside hostile ones, and how soon an endpoint is served again after an outage or a burst',
  baseline: 'the same without the hostile tenant; for floods, beside as large a load of endpoints that answer at once',
  rounds: 2,
  seconds: 20,
  run,
}

/** The cases with their baselines. */
const baselines = [
  ['URLs that change', 'alone'],
  ['one hanging URL', 'alone'],
  ['hanging webhooks', 'alone'],
  ['tests', 'alone'],
  ['all of these', 'alone'],
  ['a flood', 'a quick flood'],
  ['a flood, URLs that change', 'a quick flood'],
  ['a flood, apart', 'a quick flood, apart'],
] as const satisfies readonly (readonly [CalmCase, CalmCase])[]

async function run(context: BenchmarkContext): Promise<Outcome> {
  const lab = await createLab(context, { slowKind: slow.kind, refusingKind: refusing.kind })

  const calmSide = (name: CalmCase) => ({ measure: () => measureCalm(lab, name) })
  const calm = await inTurn<CalmCase, Calm>(
    context,
    {
      alone: calmSide('alone'),
      'URLs that change': calmSide('URLs that change'),
      'one hanging URL': calmSide('one hanging URL'),
      'hanging webhooks': calmSide('hanging webhooks'),
      tests: calmSide('tests'),
      'all of these': calmSide('all of these'),
      'a quick flood': calmSide('a quick flood'),
      'a flood': calmSide('a flood'),
      'a flood, URLs that change': calmSide('a flood, URLs that change'),
      'a quick flood, apart': calmSide('a quick flood, apart'),
      'a flood, apart': calmSide('a flood, apart'),
    },
    ({ p50, p99, rate }) => `p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms, ${rate.toFixed(2)} deliveries/s`,
  )

  const recovering = (was: 'failing' | 'hanging', isBeside: boolean) => ({
    measure: () => measureRecovery(lab, { was, isBeside }),
  })
  const back = await inTurn<string, FromBad>(
    context,
    {
      'failed, alone': recovering('failing', false),
      'failed, beside hanging': recovering('failing', true),
      'hung, alone': recovering('hanging', false),
      'hung, beside hanging': recovering('hanging', true),
      [slow.about]: { measure: () => measureCatchingUp(lab, slow) },
      [refusing.about]: { measure: () => measureCatchingUp(lab, refusing) },
    },
    ({ seconds }) => `${seconds.toFixed(2)} s`,
  )
  const secondsOf = (side: string) => median(valuesOf(back[side] ?? [], ({ seconds }) => seconds))

  return {
    measurements: [...calmMeasurements(calm), ...backMeasurements(back)],
    targets: [
      ...calmTargets(calm),
      ...(['failing', 'hanging'] as const).map((was) => {
        const side = `${was === 'failing' ? 'failed' : 'hung'}, beside hanging`
        return { figure: `served again, ${side}`, unit: 's', value: secondsOf(side), goal: recoveryGoals[was] }
      }),
      ...[slow, refusing].map((endpoint) => ({
        figure: `caught up, ${endpoint.about}`,
        unit: 's',
        value: secondsOf(endpoint.about),
        goal: { atMost: Number(catchUpBoundSeconds(endpoint).toFixed(2)) },
      })),
    ],
    costs: costsOf({ ...calm, ...back }),
    notes: [
      'p99 and rate are of the calm tenants: four, each with 5 events/s for an endpoint that answers in 5 ms. The rate is that of the one served worst. What has not come 5 s after the end has waited until then, and counts for no rate.',
      `URLs that change: an account with 30 webhooks that hang, ${hostileRates.changing} events/s for each, and ${changesPerSecond} changes of a \`url\` a second. One hanging URL: an account with 200 webhooks of it, ${hostileRates.oneUrl} events/s for each. Hanging webhooks: an account with ${hangingCount} at as many hosts, ${hostileRates.hanging} events/s for each. Tests: ${testsPerSecond} requests a second of an account to test a webhook whose endpoint takes 5 s.`,
      `A flood: ${lab.floodCount.toLocaleString('en')} events at once${lab.floodCount === floodCount ? '' : ` (of ${floodCount.toLocaleString('en')})`} of 20 accounts, for an endpoint each that takes 100 ms; a quick one: for endpoints that answer at once. Apart: one process serves the API, and another one delivers, so that all events go through the outbox.`,
      `Failed and hung: for 3 s, beside ${hangingCount} webhooks at as many hosts that hang, ${hostileRates.hanging} events/s for each, or alone. It is served again with the first event, counted from the end of the 3 s, from which on ten in a row arrive within ${normalMs} ms.`,
      `Caught up: from ${burst} events at once until nothing has waited longer than ${normalMs} ms for its first attempt, to reach 1.5 × ${burst} ÷ (${maxInFlight} ÷ latency − events/s).`,
      `Watched for ${limitsMs.failing / 1_000} s after a failure, ${limitsMs.hanging / 1_000} s after a hang and ${limitsMs.catchingUp / 1_000} s after a burst: a figure of that much means not in that time.`,
      'Each measurement has a database and a service of its own.',
    ],
  }
}

function calmMeasurements(sides: Readonly<Record<string, readonly Round<Calm>[]>>): Measurement[] {
  return Object.entries(sides).flatMap(([side, rounds]) => [
    { side, figure: 'p50', unit: 'ms', values: valuesOf(rounds, ({ p50 }) => p50) },
    { side, figure: 'p99', unit: 'ms', values: valuesOf(rounds, ({ p99 }) => p99) },
    { side, figure: 'delivered', unit: '/s', values: valuesOf(rounds, ({ rate }) => rate) },
    { side, figure: 'the others: events', unit: '/s', values: valuesOf(rounds, ({ othersRate }) => othersRate) },
  ])
}

function backMeasurements(sides: Readonly<Record<string, readonly Round<FromBad>[]>>): Measurement[] {
  return Object.entries(sides).map(([side, rounds]) => ({
    side,
    figure: 'after',
    unit: 's',
    values: valuesOf(rounds, ({ seconds }) => seconds),
  }))
}

function calmTargets(sides: Readonly<Record<CalmCase, readonly Round<Calm>[]>>): Target[] {
  return baselines.flatMap(([side, baseline]) => {
    const compare = (figure: (calm: Calm) => number) =>
      ratio(valuesOf(sides[side], figure), valuesOf(sides[baseline], figure))
    return [
      { figure: `p99, ${side}, to ${baseline}`, value: compare(({ p99 }) => p99), goal: { atMost: 2 } },
      { figure: `rate, ${side}, to ${baseline}`, value: compare(({ rate }) => rate), goal: { atLeast: 0.9 } },
    ]
  })
}
