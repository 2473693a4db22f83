import { createScheduler } from '../../../../server/webhook-delivery/scheduling/scheduler.ts'
import type {
  FlowName,
  Request,
  RequestEnd,
  Scheduler,
  SchedulerSettings,
} from '../../../../server/webhook-delivery/scheduling/scheduler-types.ts'
import { createWebhookVersions } from '../../../../server/webhook-delivery/scheduling/webhook-versions.ts'
import type { Backlog, Delivery, Webhook } from './backlog.ts'
import type { Reply } from './endpoints.ts'
import type { Time } from './time.ts'

/** Requests claimed by one statement. */
const batchSize = 500
export const claimMs = 6
/** Attempts are gathered, and written down. */
const settleMs = 12
/** How a process looks for flows that it was not told of: so many of them so often. */
const [walkEveryMs, walkSize] = [100, 100]
const retryMs = 60_000
/** The maximum time in hand. Older deliveries are put back into the queue. */
const handAgeMs = 1_000

/** The state of a webhook, as it was read with a claim. */
type Read = { webhook: Webhook; url: string; version: number; at: number }

type Reserved = { request: Request; at: number }
type InHand = { delivery: Delivery; read: Read; at: number }

export type Process = {
  readonly scheduler: Scheduler
  /** Work was put into the queue. */
  tell(flow: FlowName, count: number): void
  /** A webhook has changed. */
  tellChange(webhook: Webhook): void
  /** Begins or ends to be told of anything. */
  hear(isHearing: boolean): void
  readonly isHearing: boolean
  /** Everything it had in hand is lost; the claims lapse after a while. */
  kill(): void
}

/** The state that a process shares with the others, and the functions of the world that it can call. */
export type Surroundings = {
  time: Time
  backlog: Backlog
  /** Whether what was read is compared with what was told. */
  checksVersions: boolean
  flowOf(account: string, url: string): FlowName
  nameOf(flow: string): FlowName
  exchange(url: string, onReply: (reply: Reply) => void): void
}

export type ProcessEvents = {
  /** Just before a request is given its place. */
  onReserve(request: Request): void
  /** Just before a request begins: what was read, and when its place was reserved. */
  onBegin(request: Request, delivery: Delivery, about: { read: Read; reservedAt: number }): void
  onFree(request: Request): void
}

/** A process with workers, whose claims, exchanges and settlements take the time they take in moved time. */
export function createProcess(world: Surroundings, settings: SchedulerSettings, events: ProcessEvents): Process {
  const { time, backlog } = world
  const scheduler = createScheduler(settings)
  const versions = createWebhookVersions()
  /** All that this process has claimed, and what of it waits here. */
  const owned = new Set<Delivery>()
  const hand = new Map<string, InHand[]>()
  /** Requests that wait for the next claim. */
  const reserved: Reserved[] = []
  let isAlive = true
  let isHearing = true
  let isClaiming = false
  let walkedTo = 0
  versions.hear(true, time.now())

  function after(ms: number, what: () => void): void {
    time.after(ms, () => {
      if (isAlive) what()
    })
  }

  function tell(flow: FlowName, count: number): void {
    scheduler.offer(flow, count)
    wake()
  }

  /** Starts what may start: what is in hand at once, the rest when it is claimed. */
  function wake(): void {
    if (!isAlive) return
    while (reserved.length < batchSize) {
      const request = scheduler.next()
      if (request === null) break
      events.onReserve(request)
      const inHand = request.from === 'hand' ? hand.get(request.flow)?.shift() : undefined
      if (inHand === undefined) reserved.push({ request, at: time.now() })
      else attempt(request, inHand.delivery, fresh(inHand), inHand.at)
    }
    if (reserved.length > 0 && !isClaiming) claim(reserved.splice(0))
  }

  function claim(requests: readonly Reserved[]): void {
    isClaiming = true
    const asked = [...Map.groupBy(requests, ({ request }) => request.flow)].map(([flow, wanted]) => ({
      flow,
      wanted,
      ahead: scheduler.mayTakeInHand(world.nameOf(flow)),
      offers: scheduler.offers(flow),
    }))
    time.after(claimMs / 2, () => {
      const claimed = asked.map((ask) => {
        const { flow, wanted, ahead } = ask
        const deliveries = isAlive ? backlog.claim(flow, wanted.length + ahead, time.now()) : []
        for (const delivery of deliveries) owned.add(delivery)
        return { ...ask, found: deliveries.map((delivery) => ({ delivery, read: readNow(delivery) })) }
      })
      after(claimMs / 2, () => {
        isClaiming = false
        for (const { flow, wanted, ahead, offers, found } of claimed) {
          const asked = wanted.length + ahead
          if (found.length < asked) scheduler.drained(flow, offers)
          else if (scheduler.view(flow)?.waiting === 0) scheduler.offer(world.nameOf(flow), 2 * asked)
          for (const { request, at } of wanted) {
            const one = found.shift()
            if (one === undefined) unmade(request)
            else attempt(request, one.delivery, one.read, at)
          }
          takeInHand(flow, found)
        }
        wake()
      })
    })
  }

  function takeInHand(flow: string, found: { delivery: Delivery; read: Read }[]): void {
    if (found.length === 0) return
    const taken = found.map((one) => ({ ...one, at: time.now() }))
    const waiting = hand.get(flow) ?? []
    waiting.push(...taken)
    hand.set(flow, waiting)
    scheduler.takeInHand(world.nameOf(flow), taken.length)
    after(handAgeMs, () => {
      const old = waiting.filter((one) => taken.includes(one))
      for (const one of old) waiting.splice(waiting.indexOf(one), 1)
      scheduler.takeInHand(world.nameOf(flow), -old.length)
      for (const { delivery } of old) putBack(delivery, world.flowOf(delivery.webhook.account, delivery.webhook.url))
    })
  }

  /** Returns the earlier read of a webhook, or a new one where the earlier may be too old. */
  function fresh({ delivery, read }: InHand): Read {
    return mayBegin(read, false) ? read : readNow(delivery)
  }

  function mayBegin({ webhook, version, at }: Read, isFresh: boolean): boolean {
    return !world.checksVersions || versions.mayBegin(webhook.id, { version, readAt: at }, isFresh)
  }

  function readNow({ webhook }: Delivery): Read {
    return { webhook, url: webhook.url, version: webhook.version, at: time.now() }
  }

  function unmade(request: Request): void {
    events.onFree(request)
    scheduler.free(request)
  }

  function attempt(request: Request, delivery: Delivery, read: Read, reservedAt: number): void {
    const now = time.now()
    if (read.version === Number.POSITIVE_INFINITY) {
      owned.delete(delivery)
      delivery.state = 'canceled'
      unmade(request)
      return
    }
    const flow = world.flowOf(read.webhook.account, read.url)
    if (flow.flow !== request.flow || !mayBegin(read, true)) {
      // It waits in the flow of what the webhook has become.
      unmade(request)
      const now = readNow(delivery)
      putBack(delivery, world.flowOf(now.webhook.account, now.url))
      return
    }
    events.onBegin(request, delivery, { read, reservedAt })
    delivery.state = 'in_flight'
    delivery.begunAt.push(now)
    const patience = scheduler.begin(request, now)
    after(patience, () => {
      scheduler.elapse(time.now())
      wake()
    })
    world.exchange(read.url, (reply) => {
      if (!isAlive) return
      scheduler.end(request, endOf(reply))
      wake()
      after(settleMs, () => settle(request, delivery, reply))
    })
  }

  function putBack(delivery: Delivery, flow: FlowName): void {
    owned.delete(delivery)
    backlog.put(flow.flow, delivery, time.now())
    tell(flow, 1)
  }

  function settle(request: Request, delivery: Delivery, reply: Reply): void {
    owned.delete(delivery)
    if (reply.kind === 'accepts') delivery.state = 'succeeded'
    else if (delivery.begunAt.length >= 6) delivery.state = 'failed'
    else retryLater(delivery)
    events.onFree(request)
    scheduler.free(request)
    wake()
  }

  function retryLater(delivery: Delivery): void {
    const flow = world.flowOf(delivery.webhook.account, delivery.webhook.url)
    backlog.put(flow.flow, delivery, time.now() + retryMs)
    after(retryMs, () => tell(flow, 1))
  }

  /** Polling is the truth: finds what it was not told of. */
  function walk(): void {
    const page = backlog.walk(walkedTo, walkSize, time.now())
    walkedTo = page.next
    for (const flow of page.flows) {
      const name = world.nameOf(flow)
      if ((scheduler.view(flow)?.waiting ?? 0) === 0) scheduler.offer(name, 1)
    }
    wake()
    after(walkEveryMs, walk)
  }
  after(0, walk)

  return {
    scheduler,
    tell(flow, count) {
      if (isAlive) tell(flow, count)
    },
    tellChange: ({ id, version }) => versions.tell(id, version, time.now()),
    hear(hears) {
      isHearing = hears
      versions.hear(hears, time.now())
    },
    get isHearing() {
      return isHearing
    },
    kill() {
      isAlive = false
      for (const delivery of owned) {
        time.after(20_000, () => {
          const flow = world.flowOf(delivery.webhook.account, delivery.webhook.url)
          backlog.put(flow.flow, delivery, time.now())
        })
      }
    },
  }
}

function endOf({ kind, afterMs }: Reply): RequestEnd {
  switch (kind) {
    case 'accepts':
    case 'fails':
      return { kind: 'answered', latencyMs: afterMs }
    case 'refuses':
      return { kind: 'congested', sign: 'refused' }
    case 'breaks':
      return { kind: 'congested', sign: 'connection_failed' }
    case 'hangs':
      return { kind: 'congested', sign: 'timed_out' }
  }
}
