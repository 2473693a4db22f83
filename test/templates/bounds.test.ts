import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { templateLimits } from '../../contract/template-variables.ts'
import { createRenderer } from '../../server/rendering/renderer.ts'
import { newId } from '../../server/shared/ids.ts'
import { createRendererTurns } from '../../server/templates/renderer-turns.ts'
import { createTemplateService, type TemplateService } from '../../server/templates/service.ts'
import { live } from '../support/scope.ts'
import { createWorld, refusal, type World } from '../support/worlds/audiences.ts'

const renderer = createRenderer()
let world: World
let templates: TemplateService
beforeAll(async () => {
  world = await createWorld()
  templates = createTemplateService({ clock: world.clock, rendererOf: createRendererTurns(renderer) })
})
afterAll(async () => {
  await world.end()
  await renderer[Symbol.asyncDispose]()
})

const content = { name: 'News', subject: 'News', text: 'News' }

test('an account has at most 1,000 templates, however many are made at once', async () => {
  const { db } = world
  const crowded = newId('account', world.clock.now())
  await db.insertInto('accounts').values({ id: crowded, name: 'Crowded', plan: 'scale' }).execute()
  await sql`
    INSERT INTO templates (account_id, id, name, subject, variables, revision, created_at, updated_at)
    SELECT ${crowded}, 'tpl_' || n, '', '', '[]', 1, now(), now() FROM generate_series(3, ${templateLimits.templates}::int) AS n
  `.execute(db)
  const codes = await Promise.all(Array.from({ length: 5 }, () => refusal(templates.create(db, crowded, content))))
  expect(codes.toSorted()).toEqual(['conflict', 'conflict', 'conflict', 'not refused', 'not refused'])
  expect(await refusal(templates.create(db, world.account, content))).toBe('not refused')
  await templates.delete(db, live(crowded), 'tpl_3')
  expect(await refusal(templates.create(db, crowded, content))).toBe('not refused')
})

test('versions are listed, newest first, and the newest 100 are kept', async () => {
  const { db, account } = world
  const { id } = await templates.create(db, account, content)
  expect(await templates.versions(db, account, id)).toEqual([])
  await templates.publish(db, live(account), id)
  expect(await templates.versions(db, account, id)).toEqual([
    { version: 1, subject: 'News', publishedAt: world.clock.now().toISOString() },
  ])
  await templates.update(db, account, id, { subject: 'Newer' })
  await templates.publish(db, live(account), id)
  expect((await templates.versions(db, account, id)).map(({ version, subject }) => [version, subject])).toEqual([
    [2, 'Newer'],
    [1, 'News'],
  ])
  await db.updateTable('templates').set({ published_version: 100 }).where('id', '=', id).execute()
  await templates.update(db, account, id, { subject: 'Newest' })
  await templates.publish(db, live(account), id)
  expect((await templates.versions(db, account, id)).map(({ version }) => version)).toEqual([101, 2])
  expect(await refusal(templates.versions(db, world.stranger, id))).toBe('not_found')
})
