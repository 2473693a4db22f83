import { type ConversationOptions, converse } from './conversation.ts'
import { outcomesOf } from './outcome.ts'
import type { Pool } from './pool.ts'
import type { PoolTarget } from './pool-hosts.ts'
import type { Letter } from './route.ts'
import type { Outcome } from './transport.ts'

export type DeliverMeans = { pool: Pool; options: ConversationOptions }

export type MessageForHost = {
  target: PoolTarget
  letter: Letter
  /** True: the server is the recipients' own, not a relay. */
  isFinal: boolean
}

/**
 * Sends a message to one host, over an idle session or a new one. If the server had closed the idle session, tries
 * once more with a new one. Throws SessionError when no session can be opened.
 */
export async function deliver(delivery: MessageForHost, means: DeliverMeans, signal: AbortSignal): Promise<Outcome[]> {
  const first = await attempt(delivery, means, { signal, fresh: false })
  if (!first.isStale || signal.aborted) return first.outcomes
  return (await attempt(delivery, means, { signal, fresh: true })).outcomes
}

async function attempt(
  { target, letter, isFinal }: MessageForHost,
  { pool, options }: DeliverMeans,
  { signal, fresh }: { signal: AbortSignal; fresh: boolean },
): Promise<{ outcomes: Outcome[]; isStale: boolean }> {
  const held = await pool.hold(target, letter.waiting, { fresh, lane: letter.lane })
  const result = await converse(held.session, letter, options, signal)
  const outcomes = outcomesOf(result.answers, target.name, isFinal)
  const isStale = held.isReused && result.isStale
  held.release({
    isReusable: result.isReusable,
    congested: !isStale && outcomes.some((outcome) => outcome.kind === 'deferred' && outcome.congested),
  })
  return { outcomes, isStale }
}
