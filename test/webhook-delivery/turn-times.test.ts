import { expect, test } from 'vitest'
import type { Verdict } from '../../server/webhook-delivery/attempt/verdict.ts'
import { claimDue } from '../../server/webhook-delivery/scheduling/claim.ts'
import { settle } from '../../server/webhook-delivery/settlement/settle-attempts.ts'
import { startEngine } from '../support/engine.ts'
import { dueFlows } from '../support/flows.ts'

/*
 * The times at which an attempt was due and claimed, as a settlement stores them. The clocks of the process and of the
 * database are moved together, and stand still in between.
 */

const seconds = (from: Date, to: Date | null | undefined) => to && (to.getTime() - from.getTime()) / 1_000

test.each<{ verdict: Verdict; startedAfter: number; queued: number; claimed: number }>([
  { verdict: { kind: 'succeeded' }, startedAfter: 30, queued: 0, claimed: 20 },
  { verdict: { kind: 'retry', delaySeconds: 60, error: 'no' }, startedAfter: 30, queued: 0, claimed: 20 },
  // By a clock that is behind: never later than the start.
  { verdict: { kind: 'succeeded' }, startedAfter: 10, queued: 0, claimed: 10 },
  { verdict: { kind: 'failed', error: 'no' }, startedAfter: -10, queued: -10, claimed: -10 },
])(
  'an attempt that is $verdict.kind, due at 0, claimed at 20 s and begun at $startedAfter s by its process',
  async ({ verdict, startedAfter, queued, claimed }) => {
    await using engine = await startEngine()
    const { db, clock } = engine
    await engine.workers.stop(1_000)
    await engine.addWebhook('http://127.0.0.1:9/')
    await engine.emit()
    await engine.fanOut()
    const due = clock.now()
    await engine.advance(20)
    const { claims, waits } = await claimDue(engine, await dueFlows(engine.queue, 1))
    expect(waits).toEqual([expect.closeTo(20, 0)])
    await engine.advance(10)
    const startedAt = new Date(due.getTime() + startedAfter * 1_000)
    const outcome = { startedAt, durationMs: 1, status: 200, body: '', reposted: false, retryAfterSeconds: null }
    await settle(
      engine,
      claims.map(({ delivery }) => ({ delivery, outcome: { kind: 'answered', ...outcome }, verdict })),
    )
    const row = await db.selectFrom('deliveries').select(['queued_at', 'claimed_at']).executeTakeFirstOrThrow()
    expect(seconds(due, row.queued_at)).toBeCloseTo(queued, 0)
    expect(seconds(due, row.claimed_at)).toBeCloseTo(claimed, 0)
  },
)
