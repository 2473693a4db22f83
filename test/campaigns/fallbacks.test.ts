import { afterAll, expect, test } from 'vitest'
import type { CreateCampaign } from '../../contract/campaign-resource.ts'
import { createRenderer } from '../../server/rendering/renderer.ts'
import { createCampaignWorld } from '../support/worlds/campaigns.ts'

/*
 * Values that content has where the variables of the campaign give none.
 */

const renderer = createRenderer()
const world = await createCampaignWorld(renderer)
afterAll(async () => {
  await world[Symbol.asyncDispose]()
  await renderer[Symbol.asyncDispose]()
})

const { campaigns, db, live } = world
// So many that each variant has somebody.
const audience = await world.addAudience(40)

type Declared = NonNullable<Parameters<typeof world.templates.create>[2]['variables']>

/** Publishes a template with fallbacks. */
async function published(html: string, fallbacks: Readonly<Record<string, string>>): Promise<string> {
  const variables: Declared = Object.entries(fallbacks).map(([name, fallback]) => ({ name, type: 'string', fallback }))
  const { id } = await world.templates.create(db, world.account, { name: 'News', subject: 'News', html, variables })
  await world.templates.publish(db, live, id)
  return id
}

const html = '<p>{{ greeting }}, {{ season }}{{ other }}</p>'
const season = { season: 'spring' }
const testOf = (...variants: NonNullable<CreateCampaign['abTest']>['variants']): CreateCampaign['abTest'] => ({
  share: 100,
  winnerBy: 'manual',
  variants,
})

async function rendered(id: string, request: Parameters<typeof campaigns.render>[3] = {}): Promise<string | null> {
  return (await campaigns.render(db, live, id, request)).html
}

async function renderedAll(id: string): Promise<(string | null)[]> {
  return [await rendered(id), await rendered(id, { variant: 'A' }), await rendered(id, { variant: 'B' })]
}

/** Sends a campaign to its end. Returns the messages that there were. */
async function sendAll(id: string): Promise<Set<string | null>> {
  await world.start(id)
  await world.run()
  const emails = db.selectFrom('emails').select('id').where('campaign_id', '=', id)
  const rows = await db.selectFrom('email_contents').select('html').where('email_id', 'in', emails).execute()
  await world.handOver()
  await world.run()
  return new Set(rows.map((row) => row.html))
}

test('a copy of a campaign keeps the fallbacks of each template that is gone apart from those of the others', async () => {
  const own = await published(html, { greeting: 'Dear', other: ', always' })
  const [a, b] = [
    await published(html, { greeting: 'Hello', season: 'ever' }),
    await published(html, { greeting: 'Hi' }),
  ]
  const abTest = testOf({ name: 'A', templateId: a }, { name: 'B', templateId: b })
  const id = await world.draft(audience, { templateId: own, variables: season, abTest })
  const said = ['<p>Dear, spring, always</p>', '<p>Hello, spring</p>', '<p>Hi, spring</p>']
  expect(await sendAll(id)).toEqual(new Set(said.slice(1)))
  for (const templateId of [own, a, b]) await world.templates.delete(db, live, templateId)

  const copy = await campaigns.duplicate(db, live, id)
  expect(copy).toMatchObject({ variables: season, content: { fallbacks: { greeting: 'Dear', other: ', always' } } })
  expect(await renderedAll(copy.id)).toEqual(said)
  const { id: second } = await campaigns.duplicate(db, live, copy.id)
  expect(await sendAll(second)).toEqual(new Set(said.slice(1)))
  expect(await renderedAll((await campaigns.duplicate(db, live, second)).id)).toEqual(said)

  // As people write what they have read.
  const { variants = [] } = copy.abTest ?? {}
  const written = variants.map(({ name, content }) => ({ name, content }))
  await campaigns.update(db, live, copy.id, { content: copy.content, abTest: testOf(...written) })
  expect(await renderedAll(copy.id)).toEqual(said)
  await campaigns.update(db, live, copy.id, { variables: { season: null, greeting: 'Hey' } })
  expect(await renderedAll(copy.id)).toEqual(['<p>Hey, , always</p>', '<p>Hey, </p>', '<p>Hey, </p>'])
  await campaigns.update(db, live, copy.id, { variables: season, content: { fallbacks: null } })
  expect(await rendered(copy.id)).toBe('<p>, spring</p>')
})

test('a copy of a campaign has the fallbacks of templates that are gone, however many these had together', async () => {
  const fallbacksOf = (letter: string) =>
    Object.fromEntries(Array.from({ length: 40 }, (_, index) => [`${letter}${index}`, letter]))
  const [a, b] = [
    await published('<p>{{ a39 }}</p>', fallbacksOf('a')),
    await published('<p>{{ b39 }}</p>', fallbacksOf('b')),
  ]
  const abTest = testOf({ name: 'A', templateId: a }, { name: 'B', templateId: b })
  const id = await world.draft(audience, { content: { text: 'Own' }, variables: season, abTest })
  await sendAll(id)
  for (const templateId of [a, b]) await world.templates.delete(db, live, templateId)
  const copy = await campaigns.duplicate(db, live, id)
  expect(copy.variables).toEqual(season)
  expect(await sendAll(copy.id)).toEqual(new Set(['<p>a</p>', '<p>b</p>']))
})

test('content of a variant has the fallbacks of the template of the campaign, in a preview and when it is sent', async () => {
  const templateId = await published(html, { greeting: 'Dear' })
  const abTest = testOf({ name: 'A' }, { name: 'B', content: { html: `B: ${html}` } })
  const id = await world.draft(audience, { templateId, variables: season, abTest })
  const said = '<p>Dear, spring</p>'
  expect(await renderedAll(id)).toEqual([said, said, `B: ${said}`])
  expect(await rendered(id, { variant: 'B', variables: { season: 'fall' } })).toBe('B: <p>Dear, fall</p>')
  expect(await sendAll(id)).toEqual(new Set([said, `B: ${said}`]))
  await world.templates.delete(db, live, templateId)
  expect(await renderedAll((await campaigns.duplicate(db, live, id)).id)).toEqual([said, said, `B: ${said}`])
})

test('fallbacks of content with a name that the campaign gives itself are refused with their place', async () => {
  const message = 'is given by the campaign itself; choose another name'
  const fault = (path: string) => ({ code: 'rule_violation', details: [{ path, message }] })
  const draft = (fallbacks: Record<string, string>) => world.draft(audience, { content: { html, fallbacks } })
  await expect(draft({ contact: 'Ada' })).rejects.toMatchObject(fault('body.content.fallbacks.contact'))
  const abTest = testOf({ name: 'A' }, { name: 'B', content: { html, fallbacks: { webUrl: 'b' } } })
  await expect(world.draft(audience, { content: { html }, abTest })).rejects.toMatchObject(
    fault('body.abTest.variants[1].content.fallbacks.webUrl'),
  )
  const id = await draft({ greeting: 'Hello' })
  expect(await rendered(id, { content: { html, fallbacks: { season: 'ever' } } })).toBe('<p>, ever</p>')
  expect(await campaigns.render(db, live, id, { content: { fallbacks: { account: 'a' } } })).toMatchObject({
    errors: [{ part: 'variables', line: null, message: `account: ${message}.` }],
  })
})
