import { afterAll, afterEach, beforeEach, expect, test } from 'vitest'
import type { UpdateCampaign } from '../../contract/campaign-resource.ts'
import { exampleId } from '../../contract/ids.ts'
import { createRenderer } from '../../server/rendering/renderer.ts'
import { DomainError } from '../../server/shared/errors.ts'
import { live } from '../support/scope.ts'
import { type CampaignWorld, createCampaignWorld } from '../support/worlds/campaigns.ts'

const renderer = createRenderer()
afterAll(() => renderer[Symbol.asyncDispose]())

let world: CampaignWorld
let audience: string
beforeEach(async () => {
  world = await createCampaignWorld(renderer)
  audience = await world.addAudience(1)
})
afterEach(() => world[Symbol.asyncDispose]())

const news = {
  name: 'News',
  subject: '{{ season }} is here, {{ contact.firstName }}',
  preheader: 'News of {{ season }}',
  html: '<p>{{ greeting }} {{ contact.firstName }}, {{ season }}. {{ unsubscribeUrl }}</p>',
  text: '{{ greeting }} {{ contact.firstName }}, {{ season }}.',
  variables: [
    { name: 'season', type: 'string' as const, required: true },
    { name: 'greeting', type: 'string' as const, fallback: 'Hello' },
    { name: 'unsubscribeUrl', type: 'string' as const, required: true },
  ],
}

async function published(fields: Partial<typeof news> = {}, account = world.account): Promise<string> {
  const { id } = await world.templates.create(world.db, account, { ...news, ...fields })
  await world.templates.publish(world.db, live(account), id)
  return id
}

const variables = { season: 'Spring' }
const draft = async (fields = {}) => world.draft(audience, { templateId: await published(), variables, ...fields })
const get = (id: string) => world.campaigns.get(world.db, world.live, id)
const update = (id: string, patch: UpdateCampaign) => world.campaigns.update(world.db, world.live, id, patch)

async function sent() {
  const rows = await world.db
    .selectFrom('emails as e')
    .innerJoin('email_contents as c', 'c.email_id', 'e.id')
    .select(['e.subject', 'c.text', 'c.html'])
    .execute()
  return rows
}

/** Returns the code and the faults of a refused request. */
async function refusal(work: Promise<unknown>): Promise<unknown> {
  const error = await work.then(
    () => null,
    (reason: unknown) => reason,
  )
  if (!(error instanceof DomainError)) return error
  return [error.code, ...error.details.map(({ path, message }) => `${path}: ${message}`)]
}

test('a draft shows its template, and the subject that the template has now', async () => {
  const templateId = await published()
  const id = await world.draft(audience, { templateId, variables })
  expect(await get(id)).toMatchObject({
    templateId,
    templateVersion: null,
    subject: news.subject,
    content: { preheader: null, html: null, text: null },
    variables,
  })
  await world.templates.update(world.db, world.account, templateId, { subject: 'Changed' })
  expect((await get(id)).subject).toBe(news.subject)
  await world.templates.publish(world.db, live(world.account), templateId)
  expect((await get(id)).subject).toBe('Changed')
  const { data } = await world.campaigns.list(world.db, world.live, { limit: 10 })
  expect(data).toMatchObject([{ id, subject: 'Changed', templateId }])
  await update(id, { subject: 'Its own' })
  expect((await get(id)).subject).toBe('Its own')
  await update(id, { subject: null })
  expect((await get(id)).subject).toBe('Changed')
})

test('a draft changes from a template to content and back', async () => {
  const id = await draft()
  expect(await update(id, { content: { text: 'By hand' } })).toMatchObject({
    templateId: null,
    subject: news.subject,
    content: { preheader: null, html: null, text: 'By hand' },
  })
  const templateId = await published({ subject: 'Another' })
  expect(await update(id, { templateId })).toMatchObject({
    templateId,
    subject: 'Another',
    content: { preheader: null, html: null, text: null },
  })
})

test('a draft names each fault', async () => {
  const templateId = await published()
  const content = { text: 'Hello' }
  const make = (fields: object) =>
    world.campaigns.create(world.db, world.live, { name: 'A', audienceId: audience, from: 'a@shop.test', ...fields })
  expect(await refusal(make({ templateId, content }))).toEqual([
    'rule_violation',
    'body.templateId: must not be given beside content',
  ])
  expect(await refusal(make({ subject: 'A' }))).toEqual(['rule_violation', 'body.content: is needed, or templateId'])
  expect(await refusal(make({ content }))).toEqual(['rule_violation', 'body.subject: is needed with content'])
  expect(await refusal(make({ templateId }))).toEqual(['rule_violation', 'body.variables.season: is required'])
  expect(await refusal(make({ templateId, variables: { season: 1, contact: {} } }))).toEqual([
    'rule_violation',
    'body.variables.contact: is given by the campaign itself; choose another name',
    'body.variables.season: must be a text',
  ])
  expect(await refusal(make({ subject: 'A', content, variables: { long: 'x'.repeat(16_384) } }))).toEqual([
    'rule_violation',
    'body.variables: must be at most 16384 bytes as JSON',
  ])
  const id = await world.draft(audience, { templateId, variables })
  expect(await refusal(update(id, { templateId: null }))).toEqual([
    'rule_violation',
    'body.content: is needed, or templateId',
  ])
})

test('a draft is refused a template that does not exist, is of another account, or was never published', async () => {
  const unpublished = (await world.templates.create(world.db, world.account, news)).id
  const foreign = await published({}, world.stranger)
  const notThere = ['template_not_found', 'body.templateId: must be a template of the account']
  expect(await refusal(draft({ templateId: exampleId('template') }))).toEqual(notThere)
  expect(await refusal(draft({ templateId: foreign }))).toEqual(notThere)
  expect(await refusal(draft({ templateId: unpublished }))).toEqual([
    'template_not_found',
    'body.templateId: is not published',
  ])
})

test('a draft is refused a template that is larger than a campaign may be', async () => {
  const templateId = await published({ html: `<p>${'€'.repeat(400_000)}</p>` })
  expect(await refusal(draft({ templateId }))).toEqual([
    'rule_violation',
    'body.templateId: its html must be at most 1000000 bytes in UTF-8',
  ])
})

test('a campaign that is sent has a copy of the published version: a later change of the template or its end changes nothing', async () => {
  const templateId = await published()
  const id = await world.draft(audience, { templateId, variables })
  await world.templates.update(world.db, world.account, templateId, { text: 'Not published' })
  await world.start(id)
  await world.templates.publish(world.db, live(world.account), templateId)
  expect(await get(id)).toMatchObject({
    templateId,
    templateVersion: 1,
    subject: news.subject,
    content: { preheader: news.preheader, html: news.html, text: news.text },
    variables,
  })
  await world.turn()
  await world.templates.delete(world.db, live(world.account), templateId)
  await world.run()
  const [email] = await sent()
  expect(email).toMatchObject({ subject: 'Spring is here, Ada', text: 'Hello Ada, Spring.' })
  expect(email?.html).toContain('News of Spring')
  expect(email?.html).toMatch(/<p>Hello Ada, Spring\. https:\/\/mail\.example\/u\//)
  expect((await get(id)).templateVersion).toBe(1)
})

test('a campaign that is sent has its own subject, if it was given one, and the version that is published when it is sent', async () => {
  const templateId = await published()
  const id = await world.draft(audience, { templateId, variables, subject: 'For {{ contact.firstName }}' })
  await world.templates.update(world.db, world.account, templateId, { text: 'New text' })
  await world.templates.publish(world.db, live(world.account), templateId)
  await world.start(id)
  await world.run()
  expect(await sent()).toMatchObject([{ subject: 'For Ada', text: 'New text' }])
  expect((await get(id)).templateVersion).toBe(2)
})

test('a campaign that is sent is refused when its template was deleted before, or asks for more now', async () => {
  const templateId = await published()
  const id = await world.draft(audience, { templateId, variables })
  const more = [...news.variables, { name: 'more', type: 'string' as const, required: true }]
  await world.templates.update(world.db, world.account, templateId, { variables: more })
  await world.templates.publish(world.db, live(world.account), templateId)
  expect(await refusal(world.start(id))).toEqual(['rule_violation', 'body.variables.more: is required'])
  await world.templates.delete(world.db, live(world.account), templateId)
  expect(await refusal(world.start(id))).toEqual([
    'template_not_found',
    'body.templateId: must be a template of the account',
  ])
  expect((await get(id)).status).toBe('draft')
})

test('a campaign with a template and a subject that does not compile is not sent, and stays a draft', async () => {
  const id = await draft({ subject: '{{ season | nosuchfilter }}' })
  const message = expect.stringContaining('undefined filter: nosuchfilter')
  await expect(world.start(id)).rejects.toMatchObject({
    code: 'template_fault',
    details: [{ path: 'campaign.subject', message }],
  })
  expect((await get(id)).status).toBe('draft')
})

test('a preview of a campaign that was sent has what was copied, with a subject and values that are not stored', async () => {
  const templateId = await published()
  const id = await world.draft(audience, { templateId, variables })
  await world.start(id)
  const changes = { html: '<p>Another</p>', text: null }
  await world.templates.update(world.db, world.account, templateId, changes)
  await world.templates.publish(world.db, live(world.account), templateId)
  const render = () =>
    world.campaigns.render(world.db, world.live, id, { subject: 'New', variables: { season: 'Fall' } })
  const shown = { subject: 'New', text: 'Hello Ada, Fall.' }
  expect(await render()).toMatchObject(shown)
  await world.templates.delete(world.db, live(world.account), templateId)
  expect(await render()).toMatchObject(shown)
})

test('a campaign that is sent gives its variables to content of its own too, under what it gives itself', async () => {
  const id = await world.draft(audience, {
    subject: '{{ season }}',
    content: { text: '{{ list[1] }} {{ campaign.name }}' },
    variables: { season: 'Spring', list: ['a', 'b\u0000c'] },
  })
  await world.start(id)
  await world.run()
  const [email] = await sent()
  expect(email?.subject).toBe('Spring')
  expect((await get(id)).variables).toEqual({ season: 'Spring', list: ['a', 'b\u0000c'] })
})

test('a campaign that is sent is duplicated with its template, and with what was copied when that is deleted', async () => {
  const templateId = await published()
  const id = await world.draft(audience, { templateId, variables })
  await world.start(id)
  expect(await world.campaigns.duplicate(world.db, world.live, id)).toMatchObject({
    status: 'draft',
    templateId,
    templateVersion: null,
    subject: news.subject,
    content: { preheader: null, html: null, text: null },
    variables,
  })
  await world.templates.delete(world.db, live(world.account), templateId)
  const copy = await world.campaigns.duplicate(world.db, world.live, id)
  expect(copy).toMatchObject({
    templateId: null,
    subject: news.subject,
    content: { preheader: news.preheader, html: news.html, text: news.text, fallbacks: { greeting: 'Hello' } },
    variables,
  })
  await world.start(copy.id)
})

test('a test email is made of the version that is published now', async () => {
  const templateId = await published()
  const id = await world.draft(audience, { templateId, variables })
  await world.campaigns.test(world.db, world.live, id, { to: ['Grace <grace@example.org>'] })
  expect(await sent()).toMatchObject([{ subject: 'Spring is here, Grace', text: 'Hello Grace, Spring.' }])
})
