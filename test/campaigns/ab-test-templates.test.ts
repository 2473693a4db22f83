import { afterAll, expect, test } from 'vitest'
import type { CreateCampaign } from '../../contract/campaign-resource.ts'
import { exampleId } from '../../contract/ids.ts'
import { createWebPages, type WebPage } from '../../server/campaigns/web-pages.ts'
import { createMailTokens } from '../../server/message/mail-tokens.ts'
import { createRenderer } from '../../server/rendering/renderer.ts'
import { createCampaignWorld } from '../support/worlds/campaigns.ts'

const renderer = createRenderer()
const world = await createCampaignWorld(renderer)
afterAll(async () => {
  await world[Symbol.asyncDispose]()
  await renderer[Symbol.asyncDispose]()
})

const { campaigns, db, live } = world
// So many that each variant has somebody.
const audience = await world.addAudience(40)

type Written = Parameters<typeof world.templates.create>[2]

async function published(fields: Partial<Written> = {}): Promise<string> {
  const template = {
    name: 'News',
    subject: 'Of the template',
    html: '<p>{{ greeting }} {{ contact.firstName }}, {{ season }}</p>',
    variables: [
      { name: 'season', type: 'string' as const, required: true },
      { name: 'greeting', type: 'string' as const, fallback: 'Hello' },
    ],
  }
  const { id } = await world.templates.create(db, world.account, { ...template, ...fields })
  await world.templates.publish(db, live, id)
  return id
}

const withB = (b: object): CreateCampaign['abTest'] => ({
  share: 100,
  winnerBy: 'manual',
  variants: [{ name: 'A' }, { name: 'B', ...b }],
})
const draft = (b: object, fields: Partial<CreateCampaign> = {}) =>
  world.draft(audience, {
    subject: 'Of the campaign',
    content: { html: '<p>A, {{ season }}{{ greeting }}</p>' },
    variables: { season: 'spring' },
    abTest: withB(b),
    ...fields,
  })
const variantB = async (id: string) => (await campaigns.get(db, live, id)).abTest?.variants[1]
const refused = (code: string, ...details: { path: string; message?: string }[]) => ({ code, details })

async function sent(id: string) {
  const rows = await db
    .selectFrom('emails as e')
    .innerJoin('email_contents as c', 'c.email_id', 'e.id')
    .select(['e.variant', 'e.subject', 'c.html'])
    .where('e.campaign_id', '=', id)
    .execute()
  return new Set(rows.map(({ variant, subject, html }) => `${variant}: ${subject}, ${/<p>.*<\/p>/.exec(html ?? '')}`))
}

/** Sends the variant B as a test. Returns its HTML. */
async function tested(id: string): Promise<string | null> {
  const [emailId = ''] = await campaigns.test(db, live, id, { to: ['Grace <grace@example.org>'], variant: 'B' })
  const { html } = await db
    .selectFrom('email_contents')
    .select('html')
    .where('email_id', '=', emailId)
    .executeTakeFirstOrThrow()
  return html
}

test('a variant is sent as the version of its template that is published when the campaign is sent', async () => {
  const templateId = await published()
  const id = await draft({ templateId })
  const unsent = { name: 'B', subject: null, content: null, templateId, templateVersion: null }
  expect(await variantB(id)).toEqual(unsent)
  await world.templates.update(db, world.account, templateId, {
    html: '<p>Second: {{ greeting }} {{ contact.firstName }}, {{ season }}</p>',
  })
  await world.templates.publish(db, live, templateId)
  await world.start(id)
  expect(await variantB(id)).toEqual({
    ...unsent,
    templateVersion: 2,
    content: {
      preheader: null,
      html: expect.stringContaining('Second: {{ greeting }}'),
      mjml: null,
      text: null,
      fallbacks: { greeting: 'Hello' },
    },
  })
  await world.templates.delete(db, live, templateId)
  expect((await campaigns.render(db, live, id, { variant: 'B' })).html).toContain('Second: Hello Ada, spring')
  await world.run()
  expect(await sent(id)).toEqual(
    new Set(['0: Of the campaign, <p>A, spring</p>', '1: Of the campaign, <p>Second: Hello Ada, spring</p>']),
  )
  await world.handOver()
})

test('a variant with a template has the subject that it says, or that of the template of the campaign', async () => {
  const templateId = await published({ subject: 'Unused' })
  const own = await published({ html: '<p>Campaign</p>', variables: [] })
  const fields = { subject: null, content: undefined, templateId: own }
  const subjectOf = async (id: string) => (await campaigns.render(db, live, id, { variant: 'B' })).subject
  expect(await subjectOf(await draft({ templateId }, fields))).toBe('Of the template')
  const id = await draft({ templateId, subject: 'Of B' }, fields)
  expect(await subjectOf(id)).toBe('Of B')
  await world.start(id)
  await world.run()
  expect(await sent(id)).toEqual(new Set(['0: Of the template, <p>Campaign</p>', '1: Of B, <p>Hello Ada, spring</p>']))
  await world.handOver()
})

test('a draft renders the template of a variant, and sends it as a test with its fallbacks', async () => {
  const id = await draft({ templateId: await published() })
  expect((await campaigns.render(db, live, id, { variant: 'B' })).html).toContain('Hello Ada, spring')
  expect(await tested(id)).toContain('Hello Grace, spring')
})

test('a test of what was sent has what was copied, also when its template says something else now or is gone', async () => {
  const templateId = await published()
  const id = await draft({ templateId })
  await world.start(id)
  await world.templates.update(db, world.account, templateId, { html: '<p>Second</p>' })
  await world.templates.publish(db, live, templateId)
  expect(await tested(id)).toContain('Hello Grace, spring')
  await world.templates.delete(db, live, templateId)
  expect(await tested(id)).toContain('Hello Grace, spring')
  await world.run()
  await world.handOver()
})

test('the page for everybody has the template of the first variant with its fallbacks', async () => {
  const variants = [{ name: 'A', templateId: await published() }, { name: 'B' }]
  const id = await draft({}, { archive: 'public', abTest: { share: 100, winnerBy: 'manual', variants } })
  await world.start(id)
  await world.run()
  const tokens = createMailTokens(Buffer.alloc(32, 2))
  const { rendererOf, archiveUrl } = world.means
  const pages = createWebPages({ db, tokens, rendererOf, archiveUrl })
  let shown: WebPage | undefined
  await pages.ofCampaign(tokens.campaignPage({ accountId: world.account, campaignId: id }), async (page) => {
    shown = page
  })
  expect(shown).toMatchObject({ status: 'shown', html: expect.stringContaining('Hello , spring') })
  await world.handOver()
})

test('what is wrong with the template of a variant is told when it is written, sent and tested', async () => {
  const templateId = await published()
  const place = 'body.abTest.variants[1].templateId'
  await expect(draft({ templateId: exampleId('template') })).rejects.toMatchObject(
    refused('template_not_found', { path: place, message: 'must be a template of the account' }),
  )
  await expect(draft({ templateId, content: { text: 'B' } })).rejects.toMatchObject(
    refused('rule_violation', { path: place, message: 'must not be given beside content' }),
  )
  // Fields of the wrong form are reported before violations of a rule.
  const both = { templateId, content: { html: 'B', mjml: '<mjml></mjml>' } }
  await expect(draft(both, { from: 'nobody', content: { html: 'A', mjml: '<mjml></mjml>' } })).rejects.toMatchObject({
    code: 'validation_error',
    details: expect.arrayContaining(
      ['body.from', place, `${place.replace('templateId', 'content')}.mjml`, 'body.content.mjml'].map((path) =>
        expect.objectContaining({ path }),
      ),
    ),
  })
  const missing = { path: 'body.variables.season', message: 'is required, for the template of the variant "B"' }
  await expect(draft({ templateId }, { variables: {} })).rejects.toMatchObject(refused('rule_violation', missing))
  const id = await draft({ templateId })
  await expect(campaigns.update(db, live, id, { variables: {} })).rejects.toMatchObject(
    refused('rule_violation', missing),
  )
  const large = await published({ html: `<p>${'ä'.repeat(510_000)}</p>`, variables: [] })
  const text = 'its html must be at most 1000000 bytes in UTF-8'
  await expect(draft({ templateId: large })).rejects.toMatchObject(
    refused('rule_violation', { path: place, message: text }),
  )
  await world.templates.delete(db, live, templateId)
  const gone = refused('template_not_found', { path: place })
  await expect(campaigns.send(db, live, id, null)).rejects.toMatchObject(gone)
  await expect(campaigns.test(db, live, id, { to: ['grace@example.org'] })).rejects.toMatchObject(gone)
})

test('a preview says whose template is gone: of the variant, of the campaign, or of the request', async () => {
  const [own, templateId] = [await published(), await published()]
  const id = await draft({ templateId }, { subject: null, content: undefined, templateId: own })
  await world.templates.delete(db, live, templateId)
  await world.templates.delete(db, live, own)
  const render = (request: Parameters<typeof campaigns.render>[3]) => campaigns.render(db, live, id, request)
  const gone = (path: string) => refused('template_not_found', { path, message: 'must be a template of the account' })
  const place = 'body.abTest.variants[1].templateId'
  await expect(render({ variant: 'B' })).rejects.toMatchObject(gone(place))
  await expect(render({ variant: 'B', variables: { season: 'fall' } })).rejects.toMatchObject(gone(place))
  await expect(render({ variant: 'B', templateId: exampleId('template') })).rejects.toMatchObject(
    gone('body.templateId'),
  )
  await expect(render({ variant: 'A' })).rejects.toMatchObject(gone('body.templateId'))
  await expect(render({})).rejects.toMatchObject(gone('body.templateId'))
})

test('a copy of a campaign keeps the template of a variant, or what was copied of one that is gone', async () => {
  const templateId = await published()
  const id = await draft({ templateId })
  await world.start(id)
  const copy = await campaigns.duplicate(db, live, id)
  const unsent = { name: 'B', subject: null, content: null, templateId, templateVersion: null }
  expect(copy.abTest?.variants[1]).toEqual(unsent)
  expect(copy.variables).toEqual({ season: 'spring' })
  await world.templates.delete(db, live, templateId)
  expect((await campaigns.duplicate(db, live, copy.id)).abTest?.variants[1]).toEqual(unsent)
  const late = await campaigns.duplicate(db, live, id)
  expect(late.abTest?.variants[1]).toMatchObject({
    content: {
      html: expect.stringContaining('{{ greeting }} {{ contact.firstName }}, {{ season }}'),
      fallbacks: { greeting: 'Hello' },
    },
    templateId: null,
    templateVersion: null,
  })
  expect(late.variables).toEqual({ season: 'spring' })
  expect((await campaigns.render(db, live, late.id, { variant: 'B' })).html).toContain('Hello Ada, spring')
  await world.run()
  await world.handOver()
})
