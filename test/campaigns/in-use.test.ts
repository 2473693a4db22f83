import { afterAll, afterEach, beforeEach, expect, test } from 'vitest'
import type { CreateCampaign } from '../../contract/campaign-resource.ts'
import { guardUsedTopic } from '../../server/campaigns/in-use.ts'
import type { Handle } from '../../server/database/connection.ts'
import { createRenderer } from '../../server/rendering/renderer.ts'
import { createTopicService } from '../../server/topics/service.ts'
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

const topics = () => createTopicService({ clock: world.time.clock, guardUsed: guardUsedTopic })

type Needed = {
  id: string
  audience: string
  /** The fields of a campaign that needs it. */
  fields: Partial<CreateCampaign>
  delete: (handle: Handle, scope?: CampaignWorld['live']) => Promise<void>
}

async function audience(): Promise<Needed> {
  const id = await world.addAudience(1)
  return { id, audience: id, fields: {}, delete: (db, scope = world.live) => world.audiences.delete(db, scope, id) }
}

async function segment(): Promise<Needed> {
  const audienceId = await world.addAudience(1)
  const conditions = { type: 'field', field: 'email', operator: 'contains', value: '@' } as const
  const { id } = await world.segments.create(world.db, world.account, { audienceId, name: 'Active', conditions })
  const remove = (db: Handle, scope = world.live) => world.segments.delete(db, scope, id)
  return { id, audience: audienceId, fields: { segmentIds: [id] }, delete: remove }
}

async function topic(): Promise<Needed> {
  const { id } = await topics().create(world.db, world.account, { name: 'Offers', default: 'opt_out' })
  const remove = (db: Handle, scope = world.live) => topics().delete(db, scope, id)
  return { id, audience: await world.addAudience(1), fields: { topicId: id }, delete: remove }
}

const kinds = [
  { what: 'audience', create: audience, missing: 'audience_not_found' },
  { what: 'segment', create: segment, missing: 'segment_invalid' },
  { what: 'topic', create: topic, missing: 'topic_not_found' },
]

test.each(kinds)(
  'a deletion is refused while campaigns that need it have not ended, and names them: $what',
  async ({ what, create }) => {
    const { db, live, test: testing, campaigns, draft } = world
    const needed = await create()
    const [id, paused] = [await draft(needed.audience, needed.fields), await draft(needed.audience, needed.fields)]
    await campaigns.send(db, live, id, new Date(world.time.clock.now().getTime() + 3_600_000))
    await campaigns.send(db, live, paused, null)
    await world.turn()
    await campaigns.pause(db, live, paused)
    const other = await create()
    await campaigns.send(db, live, await draft(other.audience, other.fields), null)
    await expect(needed.delete(db)).rejects.toMatchObject({
      code: 'conflict',
      message: expect.stringMatching(
        new RegExp(
          `^The ${what} "${needed.id}" has .*: "${id}" \\(scheduled\\), "${paused}" \\(paused\\)\\. Cancel them`,
        ),
      ),
    })
    const message = await needed.delete(db, testing).then(String, (error: Error) => error.message)
    expect(message).toContain('2 of the other mode')
    expect(message).not.toContain(id)
    await campaigns.cancel(db, live, id)
    await campaigns.cancel(db, live, paused)
    expect(await refusal(needed.delete(db))).toBe('not refused')
  },
)

test.each(kinds)(
  'a draft stays when what it needs is deleted, and cannot be sent: $what',
  async ({ create, missing }) => {
    const { db, live, campaigns, draft } = world
    const needed = await create()
    const id = await draft(needed.audience, needed.fields)
    await needed.delete(db)
    expect(await refusal(campaigns.send(db, live, id, null))).toBe(missing)
    expect(await campaigns.get(db, live, id)).toMatchObject({ status: 'draft', audienceId: needed.audience })
  },
)

test.each(kinds)(
  'of sending a campaign and deleting what it needs at the same time one is refused: $what',
  async ({ create, missing }) => {
    const { db, live, campaigns, draft } = world
    const outcomes = new Set<string>()
    for (let round = 0; round < 12; round++) {
      const needed = await create()
      const id = await draft(needed.audience, needed.fields)
      const both = [() => campaigns.send(db, live, id, null), () => needed.delete(db)]
      const [first, second] = await Promise.all(
        (round % 2 === 0 ? both : both.toReversed()).map((act) => refusal(act())),
      )
      const refused = [first, second].filter((one) => one !== 'not refused')
      outcomes.add(refused.join(' and ') || 'none')
    }
    expect([...outcomes].filter((one) => one !== 'conflict' && one !== missing)).toEqual([])
  },
)

test.each(kinds)(
  'of a start and a deletion the later waits for the other one, and is refused: $what',
  async ({ create, missing }) => {
    const { db, live, campaigns, draft } = world
    const needed = await create()
    const id = await draft(needed.audience, needed.fields)
    const deleting = await db.transaction().execute(async (trx) => {
      await campaigns.send(trx, live, id, null)
      const done = refusal(needed.delete(db))
      await Promise.race([untilSomebodyWaits(db), done])
      return { done }
    })
    expect(await deleting.done).toBe('conflict')
    const empty = await create()
    const late = await draft(empty.audience, empty.fields)
    const sending = await db.transaction().execute(async (trx) => {
      await empty.delete(trx)
      const done = refusal(campaigns.send(db, live, late, null))
      await Promise.race([untilSomebodyWaits(db), done])
      return { done }
    })
    expect(await sending.done).toBe(missing)
  },
)

test('a template that is deleted changes nothing for campaigns that were sent, which have a copy', async () => {
  const { db, live, campaigns, draft, templates, account } = world
  const message = { name: 'News', subject: 'Spring', text: 'Spring is here.' }
  const { id: templateId } = await templates.create(db, account, message)
  await templates.publish(db, live, templateId)
  const people = await world.addAudience(1)
  const variants = [{ name: 'A' }, { name: 'B', templateId }]
  const scheduled = await draft(people, { templateId, abTest: { share: 100, winnerBy: 'manual', variants } })
  const unsent = await draft(people, { templateId })
  await campaigns.send(db, live, scheduled, new Date(world.time.clock.now().getTime() + 3_600_000))
  await templates.delete(db, live, templateId)
  await world.time.advance(3_600_000)
  await world.run()
  await world.handOver()
  expect(await campaigns.get(db, live, scheduled)).toMatchObject({ status: 'sending', recipients: 1 })
  expect(await db.selectFrom('emails').select('subject').execute()).toEqual([{ subject: 'Spring' }])
  expect(await refusal(campaigns.send(db, live, unsent, null))).toBe('template_not_found')
})
