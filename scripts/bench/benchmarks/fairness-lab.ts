import type { BenchmarkContext } from '../benchmark.ts'
import {
  type Load,
  type LoadOptions,
  type LoadResult,
  type Receiver,
  startCluster,
  startLoad,
  startReceiver,
  startService,
  type World,
} from '../lab.ts'
import { addTenants, settleDown, type Tenant } from '../seed.ts'
import { addSubscriber } from './latency.ts'

/* The common parts of the cases of the fairness benchmark: one database with all tenants, copied for each case. */

/** The kind of the endpoints of the calm tenants, which no other endpoint has. */
export const calmKind = 'after-5'
/** Events per second of each calm tenant. */
export const calmRate = 5
const calmCount = 4
const changingCount = 30
const oneUrlCount = 200
export const hangingCount = 24
/** Events per second, each for all webhooks of the account. */
export const hostileRates = { changing: 3, oneUrl: 2, hanging: 4 } as const
const floodAccounts = 20
/** Events of a flood. */
export const floodCount = 20_000
const connections = 256
/** Time limit of loads that are stopped otherwise. */
const longSeconds = 3_600

export type Tenants = {
  calm: readonly Tenant[]
  /** The URLs of its webhooks change. */
  changing: Tenant
  oneUrl: Tenant
  /** Each of its webhooks leads to another host. */
  hanging: Tenant
  /** Its webhook, which takes 5 s, is tested again and again. */
  testing: Tenant
  quickFlood: readonly Tenant[]
  slowFlood: readonly Tenant[]
}

/** A tenant with one webhook, and the path of its endpoint. */
export type TenantWithPath = { tenant: Tenant; path: string }

/** A running load. */
export type Ongoing = {
  /** Stops the load. Returns its responses per second. Safe to call again. */
  end(): Promise<number>
}

/** A database with all tenants and a service on it, both for one measurement. */
export type Stage = {
  world: World
  /** Adds subscribers to these tenants in rotation, each with one event. */
  send(load: Load, options: { tenants: readonly Tenant[]; perSecond: number; seconds: number }): Promise<LoadResult>
  begin(load: Load, options: { tenants: readonly Tenant[]; perSecond: number }): Ongoing
  /** Changes the URLs of the webhooks of a tenant one after the other, to endpoints that hang. */
  beginChanges(load: Load, options: { tenant: Tenant; perSecond: number }): Ongoing
  /** Sends test events to the webhooks of a tenant one after the other. Those that are refused count too. */
  beginTests(load: Load, options: { tenant: Tenant; perSecond: number }): Ongoing
}

export type Lab = {
  receiver: Receiver
  calmLoad: Load
  hostileLoad: Load
  tenants: Tenants
  /** Tenants with endpoints that respond as the first part of their path says. */
  recovering: TenantWithPath
  slow: TenantWithPath
  refusing: TenantWithPath
  /** Events of a flood, scaled by `--size`. */
  floodCount: number
  /** Length of a measurement of calm tenants. */
  seconds: number
  /**
   * Runs one measurement on a fresh copy of the database with a separate service, and stops all started loads. Throws
   * when a request of theirs got an unexpected response.
   *
   * @param isApart True: with a process for the API and one for the worker. Default: one for both.
   */
  onStage<T>(work: (stage: Stage) => Promise<T>, isApart?: boolean): Promise<T>
}

export type LabOptions = {
  /** First parts of the paths of the endpoints that catch up. */
  slowKind: string
  refusingKind: string
}

export async function createLab(
  { processes, seconds, size, progress }: BenchmarkContext,
  { slowKind, refusingKind }: LabOptions,
): Promise<Lab> {
  const cluster = await startCluster(processes, { settings: { track_commit_timestamp: 'on' } })
  const receiver = await startReceiver(processes)
  const calmLoad = await startLoad(processes, 'load, measured')
  const hostileLoad = await startLoad(processes, 'load, the others')

  progress('making the tenants')
  const prepared = await cluster.create('prepared')
  const recoveringPath = `/${calmKind}/recovering`
  const slowPath = `/${slowKind}/slow`
  const refusingPath = `/${refusingKind}/refusing`

  async function addAll(urls: readonly (readonly string[])[]): Promise<Tenant[]> {
    return addTenants(
      prepared,
      urls.map((own) => ({ urls: own })),
    )
  }
  async function addOne(urls: readonly string[]): Promise<Tenant> {
    const [tenant] = await addAll([urls])
    if (tenant === undefined) throw new Error('there is no tenant')
    return tenant
  }
  const urls = (count: number, path: (index: number) => string) =>
    Array.from({ length: count }, (_, index) => receiver.url + path(index))
  const each = (all: readonly string[]) => all.map((url) => [url])

  const tenants: Tenants = {
    calm: await addAll(each(urls(calmCount, (index) => `/${calmKind}/${index}`))),
    changing: await addOne(urls(changingCount, (index) => `/hang/${index}`)),
    oneUrl: await addOne(urls(oneUrlCount, () => '/hang/one')),
    hanging: await addOne(await hangingUrls(receiver)),
    testing: await addOne(urls(1, () => '/after-5000/tests')),
    quickFlood: await addAll(each(urls(floodAccounts, (index) => `/ok/${index}`))),
    slowFlood: await addAll(each(urls(floodAccounts, (index) => `/after-100/${index}`))),
  }
  const withPath = async (path: string) => ({ tenant: await addOne([receiver.url + path]), path })
  const recovering = await withPath(recoveringPath)
  const slow = await withPath(slowPath)
  const refusing = await withPath(refusingPath)
  await settleDown(prepared)
  await prepared.close()

  let stages = 0

  async function onStage<T>(work: (stage: Stage) => Promise<T>, isApart = false): Promise<T> {
    const world = await cluster.copy(prepared.name, `stage_${++stages}`)
    const begun: Ongoing[] = []
    try {
      await using service = await startService(processes, world, { roles: isApart ? 'api' : 'api,worker' })
      await using _worker = isApart ? await startService(processes, world, { name: 'worker', roles: 'worker' }) : null
      const optionsOf = (requests: LoadOptions['requests'], perSecond: number, forSeconds: number) => ({
        origins: [service.url],
        requests,
        rate: perSecond,
        seconds: forSeconds,
        connections,
      })
      const beginLoad = (
        load: Load,
        requests: LoadOptions['requests'],
        [perSecond, status]: [number, number | null],
      ) => {
        const running = load.run(optionsOf(requests, perSecond, longSeconds), status)
        // `end` rejects with its failure.
        running.catch(() => undefined)
        const ongoing: Ongoing = {
          async end() {
            await load.stop()
            const { latencies, seconds: took } = await running
            return latencies.length / took
          },
        }
        begun.push(ongoing)
        return ongoing
      }
      const value = await work({
        world,
        send: (load, options) =>
          load.run(optionsOf(options.tenants.map(addSubscriber), options.perSecond, options.seconds), 201),
        begin: (load, options) => beginLoad(load, options.tenants.map(addSubscriber), [options.perSecond, 201]),
        beginChanges: (load, { tenant, perSecond }) =>
          beginLoad(load, changesOf(tenant, receiver.url), [perSecond, 200]),
        beginTests: (load, { tenant, perSecond }) => beginLoad(load, testsOf(tenant), [perSecond, null]),
      })
      for (const ongoing of begun) await ongoing.end()
      return value
    } finally {
      await world.close()
      await cluster.drop(world.name)
    }
  }

  return {
    receiver,
    calmLoad,
    hostileLoad,
    tenants,
    recovering,
    slow,
    refusing,
    floodCount: Math.ceil(floodCount * size),
    seconds,
    onStage,
  }
}

/** Returns URLs of endpoints that hang, on Linux each at another loopback address. */
async function hangingUrls(receiver: Receiver): Promise<string[]> {
  const numbers = Array.from({ length: hangingCount }, (_, index) => index)
  if (process.platform !== 'linux') return numbers.map((number) => `${receiver.url}/hang/host-${number}`)
  const urls: string[] = []
  for (const number of numbers) {
    const url = new URL(receiver.url)
    url.hostname = `127.0.0.${number + 2}`
    url.pathname = '/hang/host'
    await receiver.listenToo(url.hostname)
    urls.push(url.href)
  }
  return urls
}

function changesOf({ key, webhookIds }: Tenant, origin: string): LoadOptions['requests'] {
  return webhookIds.map((id) => ({
    method: 'PATCH',
    path: `/v1/webhooks/${id}`,
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ url: `${origin}/hang/changed-{n}` }),
  }))
}

function testsOf({ key, webhookIds }: Tenant): LoadOptions['requests'] {
  return webhookIds.map((id) => ({
    method: 'POST',
    path: `/v1/webhooks/${id}/test`,
    headers: { authorization: `Bearer ${key}` },
  }))
}
