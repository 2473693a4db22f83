import { setTimeout as pause } from 'node:timers/promises'
import type { Logger } from 'pino'
import { inTransaction } from '../database/connection.ts'
import { type Loop, startLoop } from '../lib/loop.ts'
import { timeout } from '../lib/timer.ts'
import { isPersonal } from '../message/compose.ts'
import type { ClaimedEmail } from '../queue/email-queue.ts'
import type { Queue } from '../queue/queue.ts'
import { createDestinationPermits } from './destination-permits.ts'
import { createEmailSender, type Draft, type EmailSenderMeans } from './email-sender.ts'
import { type Finished, parkMs, type Sent, shortParkMs, startEmailSettler } from './email-settler.ts'
import { loadSmallContents } from './load-content.ts'
import type { RecipientFact } from './outcomes.ts'
import {
  beginningsOf,
  factsAtOnce,
  factsOfWaiting,
  isBegun,
  nextLook,
  type Plan,
  type Planned,
  planOf,
} from './plan.ts'
import type { RecordMeans } from './record-outcomes.ts'
import { refusalOfLinks } from './send-refusal.ts'
import { lockDue, markSending } from './sending-state.ts'

export type MailWorkerOptions = Omit<EmailSenderMeans, 'onError'> &
  RecordMeans & {
    queue: Queue
    logger: Logger
    /**
     * Whether each recipient of an email gets a copy with a return path of their own, because reports come back to
     * this service: nobody else can write to it then. Default: only where links differ.
     */
    copyForEach?: boolean
    /** Why links in emails would lead nowhere, for people. Default: they lead to this service. */
    faultOfLinks?: string | null
    /** Milliseconds between polls when nothing wakes the worker. Default 1,000. */
    pollIntervalMs?: number
    /** Told of what conversations and the simulator told. */
    onFact?: (fact: RecipientFact) => void
    /** Told of recipients that are sent to again since an answer is not known, and how many. */
    onResent?: (count: number) => void
  }

export type MailWorker = {
  /** There may be emails to send. */
  wake(): void
  /** Milliseconds since it last looked at the queue and settled without an error. */
  idleMs(): number
  /**
   * Claims no more, gives the conversations in flight until the deadline, then breaks them off and puts
   * back what was not sent.
   */
  stop(deadlineMs: number): Promise<void>
}

/** A claimed email in this process, until all that was begun of it is written down. */
type EmailInHand = Finished & { since: number; partsLeft: number }

/** Emails that are held for each connection there may be, to be ready for it. */
const heldPerConnection = 4
const batchSize = 200
const leastBatch = 50
const gatheringMs = 20
const keepAliveMs = 5_000
/** For writing down what came last, as the service stops. Milliseconds. */
const settlingMs = 1_000

/**
 * Sends: claims emails, says which of their recipients are begun, holds the conversations, and writes down
 * in batches what came of them. What finds no room at its destination is put back for a moment, so that it
 * is in nobody's way.
 */
export function startMailWorker(options: MailWorkerOptions): MailWorker {
  const { db, queue, clock, logger, transport, concurrency, onFact, onResent } = options
  const intervalMs = options.pollIntervalMs ?? 1_000
  const maxHeld = concurrency * heldPerConnection
  const held = new Map<string, EmailInHand>()
  const running = new Set<Promise<void>>()
  const breakOff = new AbortController()
  const permits = createDestinationPermits(transport)
  const sender = createEmailSender({ ...options, onError: report('making a message') })

  const settling = startEmailSettler({
    ...options,
    intervalMs,
    onError: report('writing down what was sent'),
    onFinished(emailIds) {
      for (const id of emailIds) held.delete(id)
      if (hasRoom()) wake()
    },
  })

  /** A claim of a handful costs as much as one of hundreds: it waits for room. */
  function hasRoom(): boolean {
    return held.size <= maxHeld / 2 && permits.room() > 0
  }

  /** Emails in a claim at most: fewer while most of what is claimed finds no room at its destination. */
  let appetite = batchSize

  function noteClaim(claimed: number, parked: number): void {
    appetite = parked > claimed / 2 ? leastBatch : Math.min(batchSize, 2 * appetite)
  }

  function claimLoop(what: 'fresh' | 'due'): Loop {
    return startLoop({
      intervalMs,
      onError: report(`claiming ${what} emails`),
      async run() {
        // What is stored in the same moment is claimed together.
        await pause(gatheringMs)
        if (!hasRoom()) return false
        const limit = Math.min(maxHeld - held.size, permits.room(), appetite)
        const claimed = await queue.emails.claim(what, limit)
        await begin(claimed)
        return claimed.length === limit
      },
    })
  }
  const fresh = claimLoop('fresh')
  const due = claimLoop('due')

  function wake(): void {
    fresh.wake()
    due.wake()
  }

  async function begin(claimed: readonly ClaimedEmail[]): Promise<void> {
    const since = performance.now()
    const others: ClaimedEmail[] = []
    for (const one of claimed) {
      const own = held.get(one.emailId)
      // The claim had lapsed, as when the database was away, but the email is still in hand here: it goes on.
      if (own !== undefined) own.claimed = one
      else others.push(one)
    }
    if (others.length === 0) return
    for (const one of others) held.set(one.emailId, { claimed: one, since, partsLeft: 0, waitsUntil: null })
    try {
      await start(await planAll(others))
    } catch (error) {
      // Where this fails too, the claims lapse and somebody makes them anew.
      await inTransaction(db, (trx) => putBack(others, trx)).catch(() => undefined)
      for (const one of others) held.delete(one.emailId)
      throw error
    }
  }

  /** Decides what is begun, and commits that it is. */
  async function planAll(claimed: readonly ClaimedEmail[]): Promise<Plan[]> {
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
        plans.set(email.id, planOf(email, { personal: hasLinks || (options.copyForEach ?? false), obstacle }, routes))
      }
      const beginnings = beginningsOf([...plans.values()])
      await markSending(trx, { ...beginnings, at: clock.now() })
      resent = beginnings.resent.length
      const parkedUntil = ({ parkedAt }: Plan) =>
        new Date(clock.now().getTime() + (parkedAt.some(permits.mayLookSoon) ? shortParkMs : parkMs))
      const idle = claimed.flatMap((one) => {
        const plan = plans.get(one.emailId)
        if (plan !== undefined && isToBeDone(plan)) return []
        return [{ claimed: one, nextAt: plan === undefined ? null : nextAtOf(plan, parkedUntil(plan)) }]
      })
      await queue.emails.finish(trx, idle)
      for (const { claimed: one } of idle) held.delete(one.emailId)
      noteClaim(claimed.length, idle.length)
      return [...plans.values()].filter(isToBeDone)
    }).catch((error) => {
      for (const { conversations } of plans.values()) for (const { leave } of conversations) leave()
      throw error
    })
    if (resent > 0) onResent?.(resent)
    return begun
  }

  /** Nothing is told of what waits for the one way out there is. */
  function waitingFacts(plan: Plan): RecipientFact[] {
    return transport.only === null ? factsOfWaiting(plan, clock.now()) : []
  }

  function isToBeDone(plan: Plan): boolean {
    return isBegun(plan) || waitingFacts(plan).length > 0
  }

  function waitsUntilOf({ waiting, parkedAt }: Plan): EmailInHand['waitsUntil'] {
    // For the one way out there is nothing is put behind what came later, also where there was no place just now.
    if (transport.only !== null) return waiting.length + parkedAt.length > 0 ? 'in-place' : null
    return waiting.reduce<EmailInHand['waitsUntil']>((until, { unusable }) => earlierOf(until, unusable.until), null)
  }

  function nextAtOf(plan: Plan, parkedUntil: Date): EmailInHand['waitsUntil'] {
    const waitsUntil = waitsUntilOf(plan)
    return waitsUntil === 'in-place' ? waitsUntil : nextLook(plan, parkedUntil)
  }

  async function start(plans: readonly Plan[]): Promise<void> {
    const ids = plans.filter(({ conversations }) => conversations.length > 0).map(({ email }) => email.id)
    // Those that cannot be read now are read one by one, when it is their turn.
    const contents = await loadSmallContents(db, ids).catch(report('reading contents'))
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
    const ending = sender
      .converse(planned, draft, breakOff.signal)
      .then((conversed) => settle(one, conversed))
      .finally(() => running.delete(ending))
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

  let keptAliveAt = performance.now()
  const keepingAlive = startLoop({
    intervalMs: keepAliveMs,
    onError: report('keeping claims alive'),
    async run() {
      // What was claimed since the last time needs nothing yet.
      const older = [...held.values()].filter((one) => one.since < keptAliveAt).map((one) => one.claimed)
      keptAliveAt = performance.now()
      await queue.emails.keepAlive(older)
      return false
    },
  })

  function report(doing: string): (error: unknown) => undefined {
    return (error) => void logger.error({ err: error }, `${doing} failed; trying again`)
  }

  async function stopAll(deadlineMs: number): Promise<void> {
    const deadline = performance.now() + deadlineMs
    await Promise.all([fresh.stop(), due.stop()])
    await Promise.race([Promise.all(running), timeout(deadline - performance.now())])
    breakOff.abort()
    await Promise.all(running)
    // Where the database does not let all be settled by then, the claims lapse and another worker finds them.
    await settling.stop(performance.now() + settlingMs)
    await keepingAlive.stop()
  }

  let stopped: Promise<void> | undefined
  return {
    wake,
    idleMs: () => Math.max(fresh.idleMs(), due.idleMs(), settling.idleMs(), keepingAlive.idleMs()),
    stop(deadlineMs) {
      stopped ??= stopAll(deadlineMs)
      return stopped
    },
  }
}

/** Back to its place in the queue is the earliest. */
function earlierOf(one: Finished['waitsUntil'], other: Finished['waitsUntil']): Finished['waitsUntil'] {
  if (one === null || other === null) return one ?? other
  if (one === 'in-place' || other === 'in-place') return 'in-place'
  return one < other ? one : other
}
