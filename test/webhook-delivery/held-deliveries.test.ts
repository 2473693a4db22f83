import { pino } from 'pino'
import { expect, test } from 'vitest'
import { fanOutBatch } from '../../server/fan-out/fan-out.ts'
import { startHeldDeliveries } from '../../server/webhook-delivery/held-deliveries.ts'
import { claimDue } from '../../server/webhook-delivery/scheduling/claim.ts'
import type { HeldDelivery } from '../../server/webhook-delivery/scheduling/deliveries-in-hand.ts'
import { flowName } from '../../server/webhook-delivery/scheduling/intake.ts'
import { createScheduler, defaultSettings } from '../../server/webhook-delivery/scheduling/scheduler.ts'
import { startLeasedEvents } from '../../server/webhook-delivery/settlement/leased-event-holder.ts'
import { startEngine } from '../support/engine.ts'
import { dueFlows, takingFor } from '../support/flows.ts'

const onError = (error: unknown) => {
  throw error
}

test('a leased delivery that was put back is held again when it is claimed before its process knows that it is written', async () => {
  await using engine = await startEngine()
  await engine.workers.stop(1_000)
  const webhookId = await engine.addWebhook('http://127.0.0.1:9/')
  await engine.emit()
  const { db, queue, clock } = engine
  const taking = takingFor(1)
  const { leased: events } = await fanOutBatch({ db, queue, clock, taking })
  const written = Promise.withResolvers<readonly HeldDelivery[]>()
  const leased = startLeasedEvents({
    db,
    queue,
    lease: taking.lease,
    intervalMs: 1_000,
    onError,
    onSettled: () => {},
    onQueued: written.resolve,
    onLate: () => {},
    onReleased: () => {},
  })
  const held = startHeldDeliveries({
    db,
    queue,
    logger: pino({ level: 'silent' }),
    scheduler: createScheduler(defaultSettings),
    putBackLeased: leased.putBack,
    onOffered: () => {},
    onError,
  })
  try {
    const taken = events.flatMap(leased.take)
    held.holdLeased(taken)
    // As the worker does when the URL of its webhook has changed.
    await held.handBack(taken)
    const queued = await written.promise
    expect(await engine.deliveriesNow(webhookId)).toHaveLength(1)
    const { claims } = await claimDue({ db, queue }, await dueFlows(queue, 1))
    const again = claims.map(held.hold)
    held.offerAgain(queued)
    expect(again.map((one) => one?.delivery.id)).toEqual(taken.map(({ delivery }) => delivery.id))
    expect(held.all()).toEqual(again)
  } finally {
    await held.stop()
    await leased.stop(performance.now() + 1_000)
  }
})

test('a leased delivery that was put back is sent once when the response to its write is lost and it is claimed meanwhile', async () => {
  await using engine = await startEngine()
  await engine.workers.stop(1_000)
  await engine.addWebhook('http://127.0.0.1:9/')
  await engine.emit()
  const { db, queue, clock } = engine
  const claim = async () => (await claimDue({ db, queue }, await dueFlows(queue, 1))).claims
  const taking = takingFor(1)
  const { leased: events } = await fanOutBatch({ db, queue, clock, taking })
  const claimed: string[] = []
  let isLost = false
  // The statement is executed and committed. Its response does not arrive, as when the connection breaks.
  const losing = db.withPlugin({
    transformQuery: ({ node }) => node,
    async transformResult({ result }) {
      if (isLost) return result
      isLost = true
      claimed.push(...(await claim()).map(({ delivery }) => delivery.id))
      throw new Error('the connection is lost')
    },
  })
  const over = Promise.withResolvers<void>()
  const leased = startLeasedEvents({
    db: losing,
    queue,
    lease: taking.lease,
    intervalMs: 10,
    onError: () => undefined,
    onSettled: () => {},
    onQueued: () => over.resolve(),
    // As the worker does.
    onLate: (one) => void held.handBack([one]).then(over.resolve),
    onReleased: () => {},
  })
  const held = startHeldDeliveries({
    db,
    queue,
    logger: pino({ level: 'silent' }),
    scheduler: createScheduler(defaultSettings),
    putBackLeased: leased.putBack,
    onOffered: () => {},
    onError,
  })
  try {
    const taken = events.flatMap(leased.take)
    held.holdLeased(taken)
    await held.handBack(taken)
    await over.promise
    expect(claimed).toEqual(taken.map(({ delivery }) => delivery.id))
    // The claim is still that of the attempt under way.
    expect(await claim()).toEqual([])
  } finally {
    await held.stop()
    await leased.stop(performance.now() + 1_000)
  }
})

test('claimed deliveries that wait in hand for long go back to the queue, and those under way stay', async () => {
  await using engine = await startEngine()
  await engine.workers.stop(1_000)
  await engine.addWebhook('http://127.0.0.1:9/')
  for (let count = 0; count < 3; count++) await engine.emit()
  const { db, queue, clock } = engine
  await fanOutBatch({ db, queue, clock })
  const scheduler = createScheduler(defaultSettings)
  let offered = 0
  const held = startHeldDeliveries({
    db,
    queue,
    logger: pino({ level: 'silent' }),
    scheduler,
    putBackLeased: () => false,
    onOffered: () => {
      offered += 1
    },
    onError,
  })
  try {
    const { claims } = await claimDue({ db, queue }, await dueFlows(queue, 3))
    const webhook = claims[0]?.delivery.webhook
    if (webhook === undefined) throw new Error('nothing was claimed')
    const name = flowName(engine.accountId, webhook)
    const free = scheduler.mayTakeInHand(name)
    held.holdInHand(name, claims)
    const underWay = held.takeFromHand(name.flow)
    // An hour is not over.
    await held.handBackWaiting(3_600_000)
    expect(held.all()).toHaveLength(3)
    expect((await claimDue({ db, queue }, await dueFlows(queue, 3))).claims).toEqual([])

    await held.handBackWaiting()
    expect(held.all()).toEqual([underWay])
    expect(offered).toBe(1)
    // The one under way was taken from hand by the worker, which tells the scheduler when its attempt begins.
    expect(scheduler.mayTakeInHand(name)).toBe(free - 1)
    const { claims: again } = await claimDue({ db, queue }, await dueFlows(queue, 3))
    const idsOf = (list: readonly { delivery: { id: string } }[]) => list.map(({ delivery }) => delivery.id).toSorted()
    expect(idsOf(again)).toEqual(idsOf(claims).filter((id) => id !== underWay?.delivery.id))
  } finally {
    await held.stop()
  }
})
