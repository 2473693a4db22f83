import { changeCount } from '../counts.ts'
import type { Claim } from './claim.ts'

/** A claimed delivery in this process, from the claim until it is settled or handed back. */
export type Held = Claim & {
  lane: Lane
  /** When it began to wait here. Milliseconds, monotonic. */
  since: number
  /** When its request began; undefined before. Milliseconds, monotonic. */
  begunAt?: number
}

/** Requests in flight to each webhook, over all lanes of the process. */
export type InFlight = Map<string, number>

/** Requests in flight, over all lanes that share them, and how many there may be. */
export type Places = {
  readonly total: number
  taken: number
  /** Of each account that has any. */
  readonly byAccount: Map<string, number>
}

export function createPlaces(total: number): Places {
  return { total, taken: 0, byAccount: new Map() }
}

export type LaneOptions = {
  places: Places
  /** Requests in flight to one webhook at most. */
  webhookCap: number
  inFlight: InFlight
  /** Makes one attempt. Never throws. */
  attempt: (held: Held) => Promise<void>
  /** Called when an attempt has ended: whichever lane waits for its webhook or its place may start one. */
  onEnd: () => void
}

/**
 * The part of the process's requests that one kind of deliveries may have. What is claimed beyond
 * the caps waits here, each webhook's in its own line. A place goes to the account that has the fewest, so that none
 * has more than others want for long that its endpoints are slow; its lines take turns.
 */
export type Lane = {
  readonly places: Places
  /** How many more may be claimed for this lane. */
  free(): number
  /** How many more may be kept for it that were never in the queue. */
  room(): number
  /** Counts room for so many as taken until it is released. */
  reserve(count: number): void
  add(held: readonly Held[]): void
  /** Says that one held delivery is settled or handed back, or that so much room is not reserved any more. */
  release(count?: number): void
  /** Says that one attempt has ended. */
  end(one: Held): void
  /** Requests in flight of the account whose delivery may start next. Null: none may. */
  fewest(): number | null
  /** Starts that one. Answers whether there was one. */
  startNext(): boolean
  /** Starts what may start. */
  pump(): void
  /** Starts nothing any more. */
  halt(): void
  /** Takes out what waits, of one webhook or of all. */
  takeWaiting(webhookId?: string): Held[]
  /** The webhooks whose line has waited longer than `ms` although only their own cap holds it up. */
  saturated(ms: number): string[]
  /** The webhooks whose line stands still for longer than `ms` because of their own cap alone. */
  stuck(ms: number): string[]
  /** What has been in flight for longer than `ms`. */
  hanging(ms: number): Held[]
  /** Takes over what is in flight in another lane, whose place is free then. */
  takeOver(one: Held): void
}

/**
 * What waits for one webhook, since when only its own cap holds that up, and when it last moved. Milliseconds,
 * monotonic.
 */
type Line = { webhookId: string; waiting: Held[]; cappedSince: number | null; movedAt: number }

/** Whose delivery is started next: the first of a line, which is one of those of an account with `count` places. */
type Next = { accountId: string; lines: Map<string, Line>; line: Line; count: number }

export function createLane({ places, webhookCap, inFlight, attempt, onEnd }: LaneOptions): Lane {
  /** Lines by webhook, by account. */
  const accounts = new Map<string, Map<string, Line>>()
  /** What is in flight, and since when. Milliseconds, monotonic. */
  const running = new Map<Held, number>()
  let held = 0
  let halted = false

  function mayStart(webhookId: string): boolean {
    return (inFlight.get(webhookId) ?? 0) < webhookCap
  }

  function takePlace(one: Held): void {
    running.set(one, performance.now())
    places.taken += 1
    changeCount(places.byAccount, one.delivery.accountId, 1)
  }

  function start(one: Held): void {
    const { webhookId } = one.delivery
    takePlace(one)
    changeCount(inFlight, webhookId, 1)
    void attempt(one).finally(() => {
      one.lane.end(one)
      changeCount(inFlight, webhookId, -1)
      onEnd()
    })
  }

  /** The webhooks whose own cap lets nothing start, those of whose lines this is so. */
  function cappedWebhooks(isMeant: (line: Line) => boolean): string[] {
    return [...accounts.values()]
      .flatMap((lines) => [...lines.values()])
      .filter((line) => !mayStart(line.webhookId) && isMeant(line))
      .map(({ webhookId }) => webhookId)
  }

  function join(one: Held): void {
    const { accountId, webhookId } = one.delivery
    const lines = accounts.get(accountId) ?? new Map<string, Line>()
    accounts.set(accountId, lines)
    const line = lines.get(webhookId)
    if (line === undefined) lines.set(webhookId, { webhookId, waiting: [one], cappedSince: null, movedAt: one.since })
    else line.waiting.push(one)
  }

  /** The first of the lines of an account of which one may start. */
  function startable(lines: Map<string, Line>): Line | null {
    for (const line of lines.values()) {
      if (mayStart(line.webhookId)) return line
      line.cappedSince ??= performance.now()
    }
    return null
  }

  function findNext(): Next | null {
    if (halted || places.taken >= places.total) return null
    let next: Next | null = null
    for (const [accountId, lines] of accounts) {
      const count = places.byAccount.get(accountId) ?? 0
      if (next !== null && count >= next.count) continue
      const line = startable(lines)
      if (line === null) continue
      next = { accountId, lines, line, count }
      // None, or fewer than they have on average: that is few enough, without a look at all others.
      if (count * places.byAccount.size < places.taken || count === 0) break
    }
    return next
  }

  /** The account goes to the end, and so does the line among its own. */
  function takeOut({ accountId, lines, line }: Next): Held | undefined {
    const one = line.waiting.shift()
    line.movedAt = performance.now()
    lines.delete(line.webhookId)
    if (line.waiting.length > 0) lines.set(line.webhookId, line)
    accounts.delete(accountId)
    if (lines.size > 0) accounts.set(accountId, lines)
    return one
  }

  const lane: Lane = {
    places,
    // Twice as many as may be in flight are claimed ahead: they last until the next have been claimed.
    free: () => Math.max(0, places.total * 3 - held),
    // What is fanned out comes with a commit and in larger batches, while as many wait to be settled.
    room: () => Math.max(0, places.total * 10 - held),
    reserve(count) {
      held += count
    },
    add(deliveries) {
      held += deliveries.length
      for (const one of deliveries) join(one)
      lane.pump()
    },
    release(count = 1) {
      held -= count
    },
    end(one) {
      if (!running.delete(one)) return
      places.taken -= 1
      changeCount(places.byAccount, one.delivery.accountId, -1)
    },
    fewest: () => findNext()?.count ?? null,
    startNext() {
      const next = findNext()
      const one = next === null ? undefined : takeOut(next)
      if (one !== undefined) start(one)
      return one !== undefined
    },
    pump() {
      while (lane.startNext());
    },
    halt() {
      halted = true
    },
    takeWaiting(webhookId) {
      return [...accounts].flatMap(([accountId, lines]) => {
        const taken = [...lines.values()].filter((line) => webhookId === undefined || line.webhookId === webhookId)
        for (const line of taken) lines.delete(line.webhookId)
        if (lines.size === 0) accounts.delete(accountId)
        return taken.flatMap(({ waiting }) => waiting)
      })
    },
    saturated(ms) {
      const before = performance.now() - ms
      return cappedWebhooks(
        ({ waiting, cappedSince }) =>
          cappedSince !== null && Math.max(cappedSince, waiting[0]?.since ?? before) < before,
      )
    },
    stuck(ms) {
      const before = performance.now() - ms
      return cappedWebhooks(({ movedAt }) => movedAt < before)
    },
    hanging(ms) {
      const before = performance.now() - ms
      return [...running].filter(([, since]) => since < before).map(([one]) => one)
    },
    takeOver(one) {
      one.lane.end(one)
      one.lane.release()
      one.lane = lane
      takePlace(one)
      held += 1
    },
  }
  return lane
}
