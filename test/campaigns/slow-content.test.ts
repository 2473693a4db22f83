import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { startCampaignWorker } from '../../server/campaigns/worker.ts'
import { createLogger } from '../../server/observability/logging.ts'
import type { Rendering, TemplateContent, TemplateRenderer } from '../../server/rendering/renderer.ts'
import { holdMonotonicClock } from '../support/clock.ts'
import { live, testing } from '../support/scope.ts'
import { createCampaignWorld } from '../support/worlds/campaigns.ts'

const nothing = async () => undefined

/** Renders, and calls `before` before each person. */
function rendererThat(before: (content: TemplateContent) => Promise<void>): TemplateRenderer {
  const renderFirst: TemplateRenderer['renderFirst'] = async (content, people, { timeMs = 20_000 } = {}) => {
    const deadline = performance.now() + timeMs
    const renderings: Rendering[] = []
    while (renderings.length === 0 || (renderings.length < people.length && performance.now() < deadline)) {
      await before(content)
      renderings.push({ status: 'rendered', rendered: { subject: 'Spring', html: null, text: 'Spring.' } })
    }
    return renderings
  }
  return {
    render: renderFirst,
    renderFirst,
    faultOf: async () => null,
    check: async () => [],
    compileMjml: async () => ({ html: '', faults: null }),
    [Symbol.asyncDispose]: nothing,
  }
}

test.each([
  { ms: 1_999, ofTurn: 1 },
  { ms: 600, ofTurn: 2 },
  { ms: 130, ofTurn: 8 },
])(
  'a turn with content that takes $ms ms to render is for $ofTurn people, and the next one goes on behind them',
  async ({ ms, ofTurn }) => {
    const monotonic = holdMonotonicClock()
    await using world = await createCampaignWorld(rendererThat(async () => monotonic.advance(ms)))
    const id = await world.draft(await world.addAudience(20))
    await world.start(id)
    await world.turn()
    for (const queued of [ofTurn, 2 * ofTurn]) {
      await world.turn()
      expect(await world.statuses()).toEqual({ queued, waiting: 20 - queued })
    }
  },
)

test('a turn with variants that are slow to render begins none behind its second', async () => {
  const monotonic = holdMonotonicClock()
  const rendered: string[] = []
  const renderer = rendererThat(async ({ subject }) => {
    rendered.push(subject)
    monotonic.advance(1_999)
  })
  await using world = await createCampaignWorld(renderer)
  const variants = Array.from({ length: 5 }, (_, n) => ({ name: `${n}`, subject: `Spring ${n}` }))
  const abTest = { winnerBy: 'manual' as const, share: 100, variants }
  await world.start(await world.draft(await world.addAudience(20), { abTest }))
  await world.turn()
  await world.turn()
  expect(rendered.length).toBe(1)
  expect(await world.statuses()).toEqual({ queued: 1, waiting: 19 })
})

test('a turn with variants renders each for its share of the second, so that few messages are made in vain', async () => {
  const monotonic = holdMonotonicClock()
  await using world = await createCampaignWorld(rendererThat(async () => monotonic.advance(30)))
  const variants = Array.from({ length: 2 }, (_, n) => ({ name: `${n}`, subject: `Spring ${n}` }))
  const abTest = { winnerBy: 'manual' as const, share: 100, variants }
  await world.start(await world.draft(await world.addAudience(100), { abTest }))
  await world.turn()
  await world.turn()
  const { queued = 0 } = await world.statuses()
  expect(queued).toBeGreaterThan(17)
})

test('an account whose content is slow to render waits until the others have had as much time', async () => {
  const monotonic = holdMonotonicClock()
  const turns: string[] = []
  const done = Promise.withResolvers<void>()
  const renderer = rendererThat(async ({ subject }) => {
    turns.push(subject)
    monotonic.advance(subject === 'Slow' ? 2_000 : 50)
    if (turns.filter((one) => one === 'Slow').length === 2) done.resolve()
  })
  await using world = await createCampaignWorld(renderer)
  await world.start(await world.draft(await world.addAudience(3), { subject: 'Slow' }))
  const scope = testing(world.stranger)
  const { id: audienceId } = await world.audiences.create(world.db, live(world.stranger), { name: 'Theirs' })
  const contacts = Array.from({ length: 20 }, (_, n) => ({ email: `ada${n}@example.org` }))
  await world.contacts.addBatch(world.db, scope, audienceId, { contacts })
  const { id } = await world.campaigns.create(world.db, scope, {
    name: 'Theirs',
    audienceId,
    from: 'hello@example.com',
    subject: 'Quick',
    content: { text: 'Hello' },
  })
  await world.campaigns.send(world.db, scope, id, null)
  const worker = startCampaignWorker({
    ...world.means,
    logger: createLogger({ level: 'silent' }),
    // A turn lists all people, and then makes one message.
    bulkPause: { over: () => Promise.resolve(), atOnce: (most) => (most > 1_000 ? 1_000 : 1) },
  })
  try {
    await done.promise
  } finally {
    await worker.stop()
  }
  expect(turns.slice(turns.indexOf('Slow') + 1, turns.lastIndexOf('Slow')).length).toBeGreaterThanOrEqual(19)
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
