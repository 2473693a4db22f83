import { afterAll, afterEach, beforeEach, expect, test } from 'vitest'
import { createRenderer } from '../../server/rendering/renderer.ts'
import { untilSomebodyWaits } from '../support/locks.ts'
import { refusal } from '../support/worlds/audiences.ts'
import { type CampaignWorld, createCampaignWorld } from '../support/worlds/campaigns.ts'

const renderer = createRenderer()
afterAll(() => renderer[Symbol.asyncDispose]())

let world: CampaignWorld
beforeEach(async () => {
  world = await createCampaignWorld(renderer)
})
afterEach(() => world[Symbol.asyncDispose]())

test('an audience is not deleted while campaigns to it have not ended, and the error names them', async () => {
  const { db, live, test: testing, campaigns, audiences, addAudience, draft } = world
  const audience = await addAudience(1)
  const [id, paused] = [await draft(audience), await draft(audience)]
  await campaigns.send(db, live, id, new Date(world.time.clock.now().getTime() + 3_600_000))
  await campaigns.send(db, live, paused, null)
  await world.turn()
  await campaigns.pause(db, live, paused)
  const other = await draft(await addAudience(1))
  await campaigns.send(db, live, other, null)
  await expect(audiences.delete(db, live, audience)).rejects.toMatchObject({
    code: 'conflict',
    message: expect.stringContaining(`"${id}" (scheduled), "${paused}" (paused). Cancel them`),
  })
  const message = await audiences.delete(db, testing, audience).catch((error: Error) => error.message)
  expect(message).toContain('2 of the other mode')
  expect(message).not.toContain(id)
  await campaigns.cancel(db, live, id)
  await campaigns.cancel(db, live, paused)
  expect(await refusal(audiences.delete(db, live, audience))).toBe('not refused')
})

test('a draft stays when its audience is deleted, and cannot be sent', async () => {
  const { db, live, campaigns, audiences, addAudience, draft } = world
  const audience = await addAudience(1)
  const id = await draft(audience)
  await audiences.delete(db, live, audience)
  expect(await refusal(campaigns.send(db, live, id, null))).toBe('audience_not_found')
  expect(await campaigns.get(db, live, id)).toMatchObject({ status: 'draft', audienceId: audience })
})

test('of sending a campaign and deleting its audience at the same time one is refused', async () => {
  const { db, live, campaigns, audiences, addAudience, draft } = world
  const outcomes = new Set<string>()
  for (let round = 0; round < 12; round++) {
    const audience = await addAudience(1)
    const id = await draft(audience)
    const both = [() => campaigns.send(db, live, id, null), () => audiences.delete(db, live, audience)]
    const [first, second] = await Promise.all((round % 2 === 0 ? both : both.toReversed()).map((act) => refusal(act())))
    outcomes.add([first, second].toSorted().join(' and '))
  }
  expect([...outcomes].filter((one) => !one.endsWith('and not refused'))).toEqual([])
})

test('the later of the two waits for the other one, and is refused', async () => {
  const { db, live, campaigns, audiences, addAudience, draft } = world
  const audience = await addAudience(1)
  const id = await draft(audience)
  const deleting = await db.transaction().execute(async (trx) => {
    await campaigns.send(trx, live, id, null)
    const done = refusal(audiences.delete(db, live, audience))
    await Promise.race([untilSomebodyWaits(db), done])
    return { done }
  })
  expect(await deleting.done).toBe('conflict')
  const empty = await addAudience(1)
  const late = await draft(empty)
  const sending = await db.transaction().execute(async (trx) => {
    await audiences.delete(trx, live, empty)
    const done = refusal(campaigns.send(db, live, late, null))
    await Promise.race([untilSomebodyWaits(db), done])
    return { done }
  })
  expect(await sending.done).toBe('audience_not_found')
})
