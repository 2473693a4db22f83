import { defaultSettings } from '../../../../server/webhook-delivery/scheduling/scheduler.ts'
import type { FlowName, SchedulerSettings } from '../../../../server/webhook-delivery/scheduling/scheduler-types.ts'
import { createBacklog, type Delivery, type Webhook } from './backlog.ts'
import { type Behaviour, fails } from './endpoints.ts'
import { claimMs, createProcess, type Process, type Surroundings } from './process.ts'
import { createTime } from './time.ts'

/** Between a commit and what other processes are told of it. */
const toldAfterMs = 5

/**
 * Accounts, endpoints and processes that share nothing but a backlog, in moved time. Every rule that is to hold at
 * each moment is checked at each moment, against counts of its own; `broken` says what did not hold.
 */
export type World = Surroundings & {
  readonly processes: readonly Process[]
  readonly deliveries: readonly Delivery[]
  /** Descriptions of the rules that did not hold, at most ten. */
  readonly broken: readonly string[]
  /** Milliseconds between a reservation and the beginning of its request: the longest. */
  readonly longestReservation: number
  /** Requests to an endpoint at once: the most. */
  readonly mostInFlight: ReadonlyMap<string, number>
  startProcess(): Process
  kill(process: Process): void
  addWebhook(account: string, url: string): Webhook
  endpoint(url: string, behaviour: Behaviour): void
  /** An event for a webhook, committed and fanned out by one of the processes. */
  emit(webhook: Webhook): void
  /** Answered by one of the processes at once. A null URL deletes the webhook. */
  change(webhook: Webhook, url: string | null): void
  /** Emits events for webhooks in turn at a rate, from a time to another. */
  load(webhooks: readonly Webhook[], options: { perSecond: number; from?: number; to: number }): void
}

export type WorldOptions = { processes?: number; settings?: SchedulerSettings; checksVersions?: boolean }

type Endpoint = { behaviour: Behaviour; nth: number; inFlight: number }

export function createWorld(options: WorldOptions = {}): World {
  const { settings = defaultSettings, checksVersions = true } = options
  const time = createTime()
  const backlog = createBacklog()
  const processes: Process[] = []
  const endpoints = new Map<string, Endpoint>()
  const names = new Map<string, FlowName>()
  const deliveries: Delivery[] = []
  const broken: string[] = []
  const mostInFlight = new Map<string, number>()
  let webhooks = 0
  let turn = 0
  let longestReservation = 0

  function check(holds: boolean, what: () => string): void {
    if (!holds && broken.length < 10) broken.push(`at ${time.now()} ms: ${what()}`)
  }

  function startProcess(): Process {
    const held = new Map<string, number>()
    let taken = 0
    const process: Process = createProcess(world, settings, {
      onReserve({ account, flow }) {
        const own = held.get(account) ?? 0
        check(taken < settings.places, () => 'more requests than places')
        check(own < settings.alpha * (settings.places - taken), () => `${account} starts beyond its threshold`)
        taken += 1
        held.set(account, own + 1)
        const view = process.scheduler.view(flow)
        check(view !== null && view.limit.limit >= 1 && view.limit.limit <= settings.flowMax, () => `limit of ${flow}`)
      },
      onBegin(_, delivery, { read, reservedAt }) {
        longestReservation = Math.max(longestReservation, time.now() - reservedAt)
        check(delivery.state === 'claimed', () => `delivery ${delivery.id} begins while it is ${delivery.state}`)
        const told = toldVersions.get(process)?.get(read.webhook.id) ?? 0
        check(read.version >= told, () => `${read.webhook.id} begins with version ${read.version}, told ${told}`)
        check(process.isHearing || time.now() - read.at <= claimMs, () => 'a deaf process begins with what is old')
      },
      onFree(request) {
        taken -= 1
        held.set(request.account, (held.get(request.account) ?? 0) - 1)
      },
    })
    processes.push(process)
    toldVersions.set(process, new Map())
    return process
  }

  /** By the processes, the versions of webhooks they have been told: the truth that attempts are checked against. */
  const toldVersions = new Map<Process, Map<string, number>>()

  function tellVersion(process: Process, webhook: Webhook): void {
    process.tellChange(webhook)
    toldVersions.get(process)?.set(webhook.id, webhook.version)
  }

  function nameOf(flow: string): FlowName {
    const name = names.get(flow)
    if (name === undefined) throw new Error(`nothing is known of ${flow}`)
    return name
  }

  function flowOf(account: string, url: string): FlowName {
    const flow = `${account} ${url}`
    const known = names.get(flow)
    if (known !== undefined) return known
    const name = { flow, account, host: url.split('/')[0] ?? url }
    names.set(flow, name)
    return name
  }

  function endpointOf(url: string): Endpoint {
    const known = endpoints.get(url)
    if (known !== undefined) return known
    const endpoint = { behaviour: fails, nth: 0, inFlight: 0 }
    endpoints.set(url, endpoint)
    return endpoint
  }

  /** The process that serves the next request of the API. */
  function nextProcess(): Process | undefined {
    turn += 1
    return processes[turn % processes.length]
  }

  function tellOthers(but: Process | undefined, tell: (process: Process) => void): void {
    for (const process of processes) {
      if (process === but) continue
      time.after(toldAfterMs, () => {
        if (process.isHearing) tell(process)
      })
    }
  }

  const world: World = {
    time,
    backlog,
    checksVersions,
    processes,
    deliveries,
    broken,
    mostInFlight,
    get longestReservation() {
      return longestReservation
    },
    startProcess,
    kill(process) {
      process.kill()
      processes.splice(processes.indexOf(process), 1)
    },
    addWebhook(account, url) {
      webhooks += 1
      return { id: `webhook ${webhooks}`, account, url, version: 1 }
    },
    endpoint(url, behaviour) {
      endpointOf(url).behaviour = behaviour
    },
    emit(webhook) {
      if (webhook.version === Number.POSITIVE_INFINITY) return
      const id = deliveries.length
      const delivery: Delivery = { id, webhook, state: 'claimed', queuedAt: time.now(), begunAt: [] }
      deliveries.push(delivery)
      const name = flowOf(webhook.account, webhook.url)
      backlog.put(name.flow, delivery, time.now())
      const process = nextProcess()
      process?.tell(name, 1)
      tellOthers(process, (other) => other.tell(name, 1))
    },
    change(webhook, url) {
      webhook.version = url === null ? Number.POSITIVE_INFINITY : webhook.version + 1
      if (url !== null) webhook.url = url
      const process = nextProcess()
      if (process !== undefined) tellVersion(process, webhook)
      tellOthers(process, (other) => tellVersion(other, webhook))
    },
    load(targets, { perSecond, from = 0, to }) {
      const everyMs = 1_000 / perSecond
      let count = 0
      const one = () => {
        const target = targets[count++ % targets.length]
        if (target !== undefined) world.emit(target)
        if (time.now() + everyMs < to) time.after(everyMs, one)
      }
      time.after(from - time.now(), one)
    },
    flowOf,
    nameOf,
    exchange(url, onReply) {
      const endpoint = endpointOf(url)
      endpoint.nth += 1
      const reply = endpoint.behaviour({ now: time.now(), nth: endpoint.nth, inFlight: endpoint.inFlight })
      endpoint.inFlight += 1
      mostInFlight.set(url, Math.max(mostInFlight.get(url) ?? 0, endpoint.inFlight))
      time.after(reply.afterMs, () => {
        endpoint.inFlight -= 1
        onReply(reply)
      })
    },
  }
  for (let count = 0; count < (options.processes ?? 1); count++) startProcess()
  return world
}

/** Milliseconds that deliveries of an account waited for their first attempt, in ascending order. */
export function waitsOf(world: World, account: string, from = 0): number[] {
  return world.deliveries
    .filter(({ webhook, queuedAt, state }) => webhook.account === account && queuedAt >= from && state !== 'canceled')
    .map(({ queuedAt, begunAt }) => (begunAt[0] ?? Number.POSITIVE_INFINITY) - queuedAt)
    .sort((a, b) => a - b)
}

/** The value below which such a share of ascending values is. */
export function quantile(values: readonly number[], share: number): number {
  return values[Math.min(values.length - 1, Math.floor(values.length * share))] ?? Number.NaN
}
