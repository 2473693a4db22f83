import type { Claim } from './claim.ts'

/** A claimed delivery in this process, from the claim until it is settled or handed back. */
export type Held = Claim & {
  lane: Lane
  /** When it began to wait here. Milliseconds, monotonic. */
  since: number
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

function change({ byAccount }: Places, accountId: string, by: 1 | -1): void {
  const left = (byAccount.get(accountId) ?? 0) + by
  if (left === 0) byAccount.delete(accountId)
  else byAccount.set(accountId, left)
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
  /** Starts that one. */
  startNext(): void
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
type Line = { waiting: Held[]; cappedSince: number | null; movedAt: number }

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
    change(places, one.delivery.accountId, 1)
  }

  function start(one: Held): void {
    const { webhookId } = one.delivery
    takePlace(one)
    inFlight.set(webhookId, (inFlight.get(webhookId) ?? 0) + 1)
    void attempt(one).finally(() => {
      one.lane.end(one)
      const left = (inFlight.get(webhookId) ?? 1) - 1
      if (left === 0) inFlight.delete(webhookId)
      else inFlight.set(webhookId, left)
      onEnd()
    })
  }

  function allLines(): [string, Line][] {
    return [...accounts.values()].flatMap((lines) => [...lines])
  }

  function join(one: Held): void {
    const { accountId, webhookId } = one.delivery
    const lines = accounts.get(accountId) ?? new Map<string, Line>()
    accounts.set(accountId, lines)
    const line = lines.get(webhookId)
    if (line === undefined) lines.set(webhookId, { waiting: [one], cappedSince: null, movedAt: one.since })
    else line.waiting.push(one)
  }

  /** The first of the lines of an account of which one may start. */
  function startable(lines: Map<string, Line>): string | null {
    for (const [webhookId, line] of lines) {
      if (mayStart(webhookId)) return webhookId
      line.cappedSince ??= performance.now()
    }
    return null
  }

  type Next = { accountId: string; webhookId: string; inFlight: number }

  function findNext(): Next | null {
    if (halted || places.taken >= places.total) return null
    let next: Next | null = null
    for (const [accountId, lines] of accounts) {
      const inFlight = places.byAccount.get(accountId) ?? 0
      if (next !== null && inFlight >= next.inFlight) continue
      const webhookId = startable(lines)
      if (webhookId === null) continue
      next = { accountId, webhookId, inFlight }
      // None, or fewer than they have on average: that is few enough, without a look at all others.
      if (inFlight * places.byAccount.size < places.taken || inFlight === 0) break
    }
    return next
  }

  /** The account goes to the end, and so does the line among its own. */
  function takeOut({ accountId, webhookId }: Next): Held | undefined {
    const lines = accounts.get(accountId)
    const line = lines?.get(webhookId)
    if (lines === undefined || line === undefined) return undefined
    line.movedAt = performance.now()
    lines.delete(webhookId)
    const one = line.waiting.shift()
    if (line.waiting.length > 0) lines.set(webhookId, line)
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
      change(places, one.delivery.accountId, -1)
    },
    fewest: () => findNext()?.inFlight ?? null,
    startNext() {
      const next = findNext()
      const one = next === null ? undefined : takeOut(next)
      if (one !== undefined) start(one)
    },
    pump() {
      for (let next = findNext(); next !== null; next = findNext()) {
        const one = takeOut(next)
        if (one !== undefined) start(one)
      }
    },
    halt() {
      halted = true
    },
    takeWaiting(webhookId) {
      const taken: Held[] = []
      for (const [accountId, lines] of accounts) {
        for (const id of webhookId === undefined ? [...lines.keys()] : [webhookId]) {
          taken.push(...(lines.get(id)?.waiting ?? []))
          lines.delete(id)
        }
        if (lines.size === 0) accounts.delete(accountId)
      }
      return taken
    },
    saturated(ms) {
      const before = performance.now() - ms
      const isSaturated = (id: string, { waiting, cappedSince }: Line) =>
        !mayStart(id) && cappedSince !== null && Math.max(cappedSince, waiting[0]?.since ?? before) < before
      return allLines()
        .filter(([id, line]) => isSaturated(id, line))
        .map(([id]) => id)
    },
    stuck(ms) {
      const before = performance.now() - ms
      return allLines()
        .filter(([id, { movedAt }]) => !mayStart(id) && movedAt < before)
        .map(([id]) => id)
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
