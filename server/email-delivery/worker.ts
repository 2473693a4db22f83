import { setTimeout as pause } from 'node:timers/promises'
import type { Logger } from 'pino'
import { inTransaction } from '../database/connection.ts'
import { type Loop, startLoop } from '../lib/polling-loop.ts'
import { startSystemTimer, timeout } from '../lib/timer.ts'
import { isPersonal } from '../message/compose.ts'
import type { ClaimedEmail } from '../queue/email-queue.ts'
import type { Queue } from '../queue/queue.ts'
import { type Lane, lanes } from '../shared/lanes.ts'
import { type BulkPause, createBulkPause } from './bulk-pause.ts'
import { startCampaignSignals } from './campaign-signals.ts'
import {
  beginningsOf,
  blockedOf,
  factsAtOnce,
  factsOfWaiting,
  isBegun,
  isUntried,
  nextLook,
  type Plan,
  type Planned,
  planOf,
} from './conversation-plan.ts'
import { createDestinationPermits, type DestinationPermits } from './destination-permits.ts'
import { createEmailSender, type Draft, type EmailSenderMeans } from './email-sender.ts'
import { type Finished, parkMs, type Sent, shortParkMs, startEmailSettler } from './email-settler.ts'
import { loadSmallContents } from './load-content.ts'
import type { RecipientFact } from './recipient-facts.ts'
import type { RecordMeans } from './record-facts.ts'
import { refusalOfLinks } from './send-refusal.ts'
import { lockDue, markSending, markWaiting } from './sending-queries.ts'

export type MailWorkerOptions = Omit<EmailSenderMeans, 'onError' | 'bulkPause'> &
  RecordMeans & {
    queue: Queue
    logger: Logger
    /**
     * True: each recipient gets a copy with a return path of their own, so that no other recipient can forge a report
     * about them. Set when reports come back to this service. Default: separate copies only for emails whose links
     * differ between recipients.
     */
    copyForEach?: boolean
    /** The reason why links in emails would not lead to this service, as text for people. Default: null, they do. */
    faultOfLinks?: string | null
    /** Milliseconds between polls when nothing wakes the worker. Default 1,000. */
    pollIntervalMs?: number
    /** Called with each fact that an SMTP conversation or the simulator produced. */
    onFact?: (fact: RecipientFact) => void
    /** Called with the number of recipients that are sent to again because the result of an attempt is unknown. */
    onResent?: (count: number) => void
  }

export type MailWorker = {
  /** Makes the worker look for emails of a lane now. */
  wake(lane: Lane): void
  /** For other work in bulk of this process. */
  bulkPause: Pick<BulkPause, 'over' | 'atOnce'>
  /** Returns the milliseconds since the worker last claimed, settled and renewed claims without an error. */
  idleMs(): number
  /**
   * Stops claiming, waits up to `deadlineMs` for the conversations in flight, then aborts them and returns unsent
   * emails to the queue.
   */
  stop(deadlineMs: number): Promise<void>
}

/** A claimed email that this process holds until the results of all its conversations are stored. */
type EmailInHand = Finished & { lane: Lane; since: number; partsLeft: number }

/** A lane of the worker: it claims emails while it has room for them. */
type WorkerLane = {
  permits: DestinationPermits
  /** Emails of the lane in hand. */
  inHand: number
  /** False when nothing new waited at the last claim. */
  mayHaveMore: boolean
  hasRoom(): boolean
  /** Learns how many of the claimed emails found no room at their destination. */
  adjustMaxClaim(claimed: number, parked: number): void
  fresh: Loop
  due: Loop
}

/** Emails of a lane prefetched for each allowed connection. */
const heldPerConnection = 4
const batchSize = 200
const minBatchSize = 50
const gatheringMs = 20
const keepAliveMs = 5_000
/** Wait of an email whose campaign is paused, or rests. Milliseconds. */
const heldMs = 60_000
/** Time for storing the last results when the service stops. Milliseconds. */
const settlingMs = 1_000

/**
 * Starts the loops that send email: they claim emails of each lane, mark their recipients as `sending`, hold the SMTP
 * conversations and store the results in batches. Emails whose destination has no room go back to the queue for a
 * moment, so that they do not block others.
 */
export function startMailWorker(options: MailWorkerOptions): MailWorker {
  const { db, queue, clock, logger, transport, concurrency, onFact, onResent } = options
  const intervalMs = options.pollIntervalMs ?? 1_000
  const maxHeld = concurrency * heldPerConnection
  const held = new Map<string, EmailInHand>()
  const running = new Set<Promise<void>>()
  const aborting = new AbortController()
  const bulkPause = createBulkPause({ now: () => performance.now(), startTimer: startSystemTimer })
  const sender = createEmailSender({ ...options, bulkPause, onError: report('preparing a message') })

  const campaigns = startCampaignSignals({
    db,
    stopping: aborting.signal,
    onError: report('looking for campaigns that stopped'),
  })
  const settling = startEmailSettler({
    ...options,
    intervalMs,
    onError: report('storing the results of sending'),
    onFinished(emailIds) {
      const ended = new Set(emailIds.map((id) => letGo(id)))
      // Emails that end in one lane may leave room in the other.
      for (const lane of lanes) {
        if (ended.has(lane) || lane === 'bulk' || laneOf[lane].mayHaveMore) wakeForRoom(laneOf[lane])
      }
    },
  })

  function startLane(name: Lane): WorkerLane {
    const permits = createDestinationPermits(transport, name)
    /** Maximum emails per claim. It shrinks while most claimed emails find no room at their destination. */
    let maxClaim = batchSize

    function claimLoop(what: 'fresh' | 'due'): Loop {
      return startLoop({
        intervalMs,
        onError: report(`claiming ${what} emails`),
        async run() {
          const end = name === 'single' && what === 'fresh' ? takeExpected() : null
          try {
            // Emails stored in the same moment are claimed together.
            await pause(gatheringMs)
            if (name === 'bulk') await bulkPause.over()
            if (!lane.hasRoom()) {
              lane.mayHaveMore = true
              return false
            }
            const most = name === 'bulk' ? bulkPause.atOnce(maxClaim) : maxClaim
            const limit = Math.min(maxHeld - lane.inHand, permits.room(), most)
            const claimed = await queue.emails.claim(what, name, limit)
            if (what === 'fresh') lane.mayHaveMore = claimed.length === limit
            await begin(claimed, name)
            return claimed.length === limit
          } finally {
            end?.()
          }
        },
      })
    }

    const lane: WorkerLane = {
      permits,
      inHand: 0,
      mayHaveMore: true,
      // A small claim costs as much as one of hundreds, so claims wait for room.
      hasRoom: () => lane.inHand <= maxHeld / 2 && permits.room() > 0,
      adjustMaxClaim(claimed, parked) {
        maxClaim = parked > claimed / 2 ? minBatchSize : Math.min(batchSize, 2 * maxClaim)
      },
      fresh: claimLoop('fresh'),
      due: claimLoop('due'),
    }
    return lane
  }
  const laneOf: Record<Lane, WorkerLane> = { single: startLane('single'), bulk: startLane('bulk') }
  const claiming = lanes.flatMap((lane) => [laneOf[lane].fresh, laneOf[lane].due])

  /** Ends the pause for emails that were announced and are not claimed yet. Null: none were announced. */
  let endExpected: (() => void) | null = null

  function takeExpected(): (() => void) | null {
    const end = endExpected
    endExpected = null
    return end
  }

  function wake(lane: Lane): void {
    if (lane === 'single') endExpected ??= bulkPause.begin()
    laneOf[lane].fresh.wake()
    laneOf[lane].due.wake()
  }

  function wakeForRoom({ hasRoom, mayHaveMore, fresh, due }: WorkerLane): void {
    if (!hasRoom()) return
    if (mayHaveMore) fresh.wake()
    due.wake()
  }

  function take(claimed: ClaimedEmail, lane: Lane): void {
    held.set(claimed.emailId, { claimed, lane, since: performance.now(), partsLeft: 0, waitsUntil: null })
    laneOf[lane].inHand += 1
  }

  /** Lets go of an email whose claim has ended. Returns its lane; null: it is not in hand. */
  function letGo(emailId: string): Lane | null {
    const one = held.get(emailId)
    if (one === undefined) return null
    held.delete(emailId)
    laneOf[one.lane].inHand -= 1
    if (one.waitsUntil === 'in-place') laneOf[one.lane].mayHaveMore = true
    return one.lane
  }

  async function begin(claimed: readonly ClaimedEmail[], lane: Lane): Promise<void> {
    const newlyClaimed: ClaimedEmail[] = []
    for (const one of claimed) {
      const own = held.get(one.emailId)
      // The claim had lapsed, for example while the database was away, but this process still holds the email.
      // It continues under the new claim.
      if (own !== undefined) own.claimed = one
      else newlyClaimed.push(one)
    }
    if (newlyClaimed.length === 0) return
    for (const one of newlyClaimed) take(one, lane)
    try {
      await start(await planAll(newlyClaimed, lane))
    } catch (error) {
      // If this fails too, the claims lapse and the emails are claimed again.
      await inTransaction(db, (trx) => putBack(newlyClaimed, trx)).catch(() => undefined)
      for (const one of newlyClaimed) letGo(one.emailId)
      throw error
    }
  }

  /**
   * Plans the claimed emails, commits which recipients are being sent to, and returns the plans that need work now.
   * Ends the claims of the other emails: they are done, or go back to the queue.
   */
  async function planAll(claimed: readonly ClaimedEmail[], lane: Lane): Promise<Plan[]> {
    const { permits, adjustMaxClaim } = laneOf[lane]
    const plans = new Map<string, Plan>()
    const { destinationOf, unusable } = transport
    const routes = { destinationOf, unusable, take: permits.take }
    let resent = 0
    const begun = await inTransaction(db, async (trx) => {
      const emails = await lockDue(
        trx,
        claimed.map(({ emailId }) => emailId),
      )
      for (const email of emails) {
        const hasLinks = isPersonal(email)
        const obstacle = hasLinks ? refusalOfLinks(options.faultOfLinks ?? null) : null
        const personal = hasLinks || (options.copyForEach ?? false)
        plans.set(email.id, planOf(email, { lane, personal, obstacle }, routes))
      }
      const beginnings = beginningsOf([...plans.values()])
      await markSending(trx, { ...beginnings, at: clock.now() })
      // The time of waiting for a single destination never counts.
      if (transport.only === null) await markWaiting(trx, blockedOf([...plans.values()]), clock.now())
      resent = beginnings.resent.length
      const parkingMs = ({ parkedAt, isHeld }: Plan) => {
        if (isHeld) return heldMs
        return parkedAt.some(permits.mayLookSoon) ? shortParkMs : parkMs
      }
      const parkedUntil = (plan: Plan) => new Date(clock.now().getTime() + parkingMs(plan))
      const idle = claimed.flatMap((one) => {
        const plan = plans.get(one.emailId)
        if (plan !== undefined && hasWorkNow(plan)) return []
        return [{ claimed: one, nextAt: plan === undefined ? null : nextAtOf(plan, parkedUntil(plan)) }]
      })
      await queue.emails.finish(trx, idle)
      for (const { claimed: one, nextAt } of idle) {
        letGo(one.emailId)
        if (nextAt === 'in-place') laneOf[lane].mayHaveMore = true
      }
      adjustMaxClaim(claimed.length, idle.length)
      return [...plans.values()].filter(hasWorkNow)
    }).catch((error) => {
      for (const { conversations } of plans.values()) for (const { leave } of conversations) leave()
      throw error
    })
    if (resent > 0) onResent?.(resent)
    return begun
  }

  /**
   * Returns the facts about waiting recipients. None with a single destination: the operator has to repair that. Their
   * `triedSince` may be earlier than `markWaiting` has made it since; `transition` reads the row again.
   */
  function waitingFacts(plan: Plan): RecipientFact[] {
    return transport.only === null ? factsOfWaiting(plan, clock.now()) : []
  }

  function hasWorkNow(plan: Plan): boolean {
    return isBegun(plan) || waitingFacts(plan).length > 0
  }

  function waitsUntilOf({ waiting, parkedAt }: Plan): EmailInHand['waitsUntil'] {
    // With a single destination, emails keep their place in the queue, also when there was no free permit.
    if (transport.only !== null) return waiting.length + parkedAt.length > 0 ? 'in-place' : null
    return waiting.reduce<EmailInHand['waitsUntil']>((until, { unusable }) => earlierOf(until, unusable.until), null)
  }

  function nextAtOf(plan: Plan, parkedUntil: Date): EmailInHand['waitsUntil'] {
    const waitsUntil = waitsUntilOf(plan)
    return waitsUntil === 'in-place' ? waitsUntil : nextLook(plan, parkedUntil)
  }

  async function start(plans: readonly Plan[]): Promise<void> {
    const ids = plans.filter(({ conversations }) => conversations.length > 0).map(({ email }) => email.id)
    // Contents that cannot be loaded now are loaded one by one, just before each email is sent.
    const contents = await loadSmallContents(db, ids).catch(report('loading the contents of emails'))
    for (const plan of plans) {
      const { email, conversations } = plan
      const one = held.get(email.id)
      if (one === undefined) continue
      const facts = [...factsAtOnce(plan, clock.now()), ...waitingFacts(plan)]
      one.waitsUntil = waitsUntilOf(plan)
      one.partsLeft = conversations.length + (facts.length > 0 ? 1 : 0)
      const draft: Draft = { small: contents?.get(email.id) }
      if (facts.length > 0) settle(one, { facts, released: [], waiting: null })
      for (const planned of conversations) run(one, planned, draft)
    }
  }

  function run(one: EmailInHand, planned: Planned, draft: Draft): void {
    const { campaign } = planned.email
    const joined = campaign && campaigns.join(campaign, planned.recipients.every(isUntried) ? 'first' : 'later')
    const ending = sender
      .converse(planned, draft, { stopping: aborting.signal, waiting: joined?.signal ?? aborting.signal })
      .then((conversed) => settle(one, conversed))
      .finally(() => {
        joined?.leave()
        running.delete(ending)
      })
    running.add(ending)
  }

  function settle(one: EmailInHand, sent: Omit<Sent, 'finished'>): void {
    one.partsLeft -= 1
    one.waitsUntil = earlierOf(one.waitsUntil, sent.waiting?.until ?? null)
    if (onFact !== undefined) sent.facts.forEach(onFact)
    settling.add({ ...sent, finished: one.partsLeft === 0 ? one : null })
  }

  async function putBack(claimed: readonly ClaimedEmail[], trx: Parameters<typeof queue.emails.finish>[0]) {
    const nextAt = new Date(clock.now().getTime() + parkMs)
    await queue.emails.finish(
      trx,
      claimed.map((one) => ({ claimed: one, nextAt })),
    )
  }

  let renewedAt = performance.now()
  const renewing = startLoop({
    intervalMs: keepAliveMs,
    onError: report('renewing the claims of emails'),
    async run() {
      // Claims made since the last pass need no renewal yet.
      const older = [...held.values()].filter((one) => one.since < renewedAt).map((one) => one.claimed)
      renewedAt = performance.now()
      await queue.emails.keepAlive(older)
      return false
    },
  })

  function report(doing: string): (error: unknown) => undefined {
    return (error) => void logger.error({ err: error }, `${doing} failed; trying again`)
  }

  async function stopAll(deadlineMs: number): Promise<void> {
    const deadline = performance.now() + deadlineMs
    await Promise.all(claiming.map((loop) => loop.stop()))
    await Promise.race([Promise.all(running), timeout(deadline - performance.now())])
    aborting.abort()
    await Promise.all(running)
    // Results that cannot be stored by then are lost: the claims lapse and another worker takes the emails.
    await settling.stop(performance.now() + settlingMs)
    await Promise.all([renewing.stop(), campaigns.stop()])
  }

  let stopped: Promise<void> | undefined
  return {
    wake,
    bulkPause,
    idleMs: () => Math.max(...[...claiming, settling, renewing, campaigns].map((loop) => loop.idleMs())),
    stop(deadlineMs) {
      stopped ??= stopAll(deadlineMs)
      return stopped
    },
  }
}

/** Returns the earlier of two values; `in-place` is earlier than any time, and null is no value. */
function earlierOf(one: Finished['waitsUntil'], other: Finished['waitsUntil']): Finished['waitsUntil'] {
  if (one === null || other === null) return one ?? other
  if (one === 'in-place' || other === 'in-place') return 'in-place'
  return one < other ? one : other
}
