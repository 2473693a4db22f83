import { sql } from 'kysely'
import { expect, test } from 'vitest'
import type { TemplateRenderer } from '../../server/rendering/renderer.ts'
import { holdMonotonicClock } from '../support/clock.ts'
import { createCampaignWorld } from '../support/worlds/campaigns.ts'

const nothing = async () => undefined

/** Renders at once, and tells `before` for how many people. */
function rendererThat(before: (people: number) => Promise<void>): TemplateRenderer {
  const render: TemplateRenderer['render'] = async (_content, people) => {
    await before(people.length)
    return people.map(() => ({ status: 'rendered', rendered: { subject: 'Spring', html: null, text: 'Spring.' } }))
  }
  return {
    render,
    renderFirst: render,
    faultOf: async () => null,
    check: async () => [],
    compileMjml: async () => ({ html: '', faults: null }),
    [Symbol.asyncDispose]: nothing,
  }
}

test('a turn with content that is slow to render ends soon, and the next one goes on behind it', async () => {
  const asked: number[] = []
  const monotonic = holdMonotonicClock()
  // As slow as a template may be: the first eight take the time of a turn.
  const renderer = rendererThat(async (people) => {
    asked.push(people)
    monotonic.advance(people * 130)
  })
  await using world = await createCampaignWorld(renderer)
  const id = await world.draft(await world.addAudience(20))
  await world.start(id)
  await world.turn()
  await world.turn()
  expect(asked).toEqual([8])
  expect(await world.statuses()).toEqual({ queued: 8, waiting: 12 })
  await world.turn()
  expect(await world.statuses()).toEqual({ queued: 16, waiting: 4 })
})

test('no connection waits while a test is rendered', async () => {
  const inTransaction: number[] = []
  const look = { at: nothing as () => Promise<void> }
  const renderer = rendererThat(() => look.at())
  await using world = await createCampaignWorld(renderer)
  look.at = async () => {
    const { rows } = await sql<{ count: number }>`
      SELECT count(*)::int AS count FROM pg_stat_activity
      WHERE datname = current_database() AND state LIKE 'idle in transaction%' AND pid <> pg_backend_pid()
    `.execute(world.db)
    inTransaction.push(rows[0]?.count ?? -1)
  }
  const id = await world.draft(await world.addAudience(1))
  expect(await world.campaigns.test(world.db, world.live, id, { to: ['Grace <grace@example.org>'] })).toHaveLength(1)
  expect(inTransaction).toEqual([0])
})
