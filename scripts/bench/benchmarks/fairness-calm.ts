import { setTimeout as delay } from 'node:timers/promises'
import { arrivalsOf, waitsOf } from '../arrivals.ts'
import { appendEvents, type Tenant, wake } from '../seed.ts'
import { median, quantile } from '../statistics.ts'
import { calmKind, calmRate, hostileRates, type Lab, type Ongoing, type Stage } from './fairness-lab.ts'

/* Measures the deliveries to calm tenants while others load the service. */

/** Changes of URLs per second, of all webhooks together. */
export const changesPerSecond = 20
/** Requests per second to test a webhook. */
export const testsPerSecond = 20
const warmUpSeconds = 3
/** Seconds of hostile load before the calm tenants are measured. */
const leadSeconds = 5
/** Milliseconds to wait for arrivals after the last request. */
const patienceMs = 5_000

export type CalmCase =
  | 'alone'
  | 'URLs that change'
  | 'one hanging URL'
  | 'hanging webhooks'
  | 'tests'
  | 'all of these'
  | 'a quick flood'
  | 'a flood'
  | 'a flood, URLs that change'
  | 'a quick flood, apart'
  | 'a flood, apart'

/** `rate`: deliveries per second to the worst served calm tenant. `othersRate`: events per second of the others. */
export type Calm = { p50: number; p99: number; rate: number; othersRate: number }

type Others = {
  begin: (lab: Lab, stage: Stage) => Ongoing[]
  flood: (lab: Lab) => readonly Tenant[]
  /** True: API and worker are processes of their own. */
  isApart?: true
}

type Begin = Others['begin']

const nobody = { begin: () => [], flood: () => [] }
const beginChanging: Begin = ({ hostileLoad, tenants: { changing: tenant } }, stage) => [
  stage.begin(hostileLoad, { tenants: [tenant], perSecond: hostileRates.changing }),
  stage.beginChanges(hostileLoad, { tenant, perSecond: changesPerSecond }),
]
const changing = { begin: beginChanging }
const beginOneUrl: Begin = ({ hostileLoad, tenants: { oneUrl } }, stage) => [
  stage.begin(hostileLoad, { tenants: [oneUrl], perSecond: hostileRates.oneUrl }),
]
const beginHanging: Begin = ({ hostileLoad, tenants: { hanging } }, stage) => [
  stage.begin(hostileLoad, { tenants: [hanging], perSecond: hostileRates.hanging }),
]
const beginTests: Begin = ({ hostileLoad, tenants: { testing: tenant } }, stage) => [
  stage.beginTests(hostileLoad, { tenant, perSecond: testsPerSecond }),
]
const quickFlood = { flood: ({ tenants }: Lab) => tenants.quickFlood }
const slowFlood = { flood: ({ tenants }: Lab) => tenants.slowFlood }

const others: Readonly<Record<CalmCase, Others>> = {
  alone: nobody,
  'URLs that change': { ...nobody, ...changing },
  'one hanging URL': { ...nobody, begin: beginOneUrl },
  'hanging webhooks': { ...nobody, begin: beginHanging },
  tests: { ...nobody, begin: beginTests },
  'all of these': {
    ...nobody,
    begin: (...on) => [beginChanging, beginOneUrl, beginHanging, beginTests].flatMap((begin) => begin(...on)),
  },
  'a quick flood': { ...nobody, ...quickFlood },
  'a flood': { ...nobody, ...slowFlood },
  'a flood, URLs that change': { ...changing, ...slowFlood },
  'a quick flood, apart': { ...nobody, ...quickFlood, isApart: true },
  'a flood, apart': { ...nobody, ...slowFlood, isApart: true },
}

/** Measures the calm tenants during the load of one case. */
export function measureCalm(lab: Lab, name: CalmCase): Promise<Calm> {
  const { receiver, calmLoad, tenants, seconds } = lab
  const accountIds = tenants.calm.map(({ accountId }) => accountId)

  return lab.onStage(async (stage) => {
    const { world } = stage
    const flooding = others[name].flood(lab)
    const commitFlood = flooding.length === 0 ? null : await appendEvents(world, flooding, lab.floodCount)
    const perSecond = calmRate * tenants.calm.length
    const sendCalm = (forSeconds: number) =>
      stage.send(calmLoad, { tenants: tenants.calm, perSecond, seconds: forSeconds })

    await sendCalm(Math.min(warmUpSeconds, seconds))
    const ongoing = others[name].begin(lab, stage)
    if (ongoing.length > 0) await delay(Math.min(leadSeconds, seconds) * 1_000)
    await receiver.reset('arrivals')
    const since = Date.now()
    if (commitFlood !== null) {
      await commitFlood()
      await wake(world)
    }
    const { latencies } = await sendCalm(seconds)
    await Promise.race([receiver.until(calmKind, latencies.length), delay(patienceMs, undefined, { ref: false })])
    const arrivals = await arrivalsOf(world, receiver, { accountIds, since })
    const waits = waitsOf(arrivals, Date.now())
    const rates = accountIds.map(
      (id) => arrivals.filter(({ accountId, arrivedAt }) => accountId === id && arrivedAt !== null).length / seconds,
    )
    // The events come first; changes of URLs are not counted.
    const [othersRate = 0] = await Promise.all(ongoing.map((one) => one.end()))
    return {
      p50: median(waits),
      p99: quantile(waits, 0.99),
      rate: Math.min(...rates),
      othersRate: othersRate + (commitFlood === null ? 0 : lab.floodCount / seconds),
    }
  }, others[name].isApart)
}
