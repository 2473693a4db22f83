import { afterAll, expect, test } from 'vitest'
import type { CreateCampaign } from '../../contract/campaign-resource.ts'
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
const people = 40
const audience = await world.addAudience(people)

const mjml = '<mjml><mj-body><mj-section><mj-column><mj-text>C</mj-text></mj-column></mj-section></mj-body></mjml>'
const contents = [
  null,
  { preheader: 'Look', html: '<p>B for {{ contact.firstName }}, <a href="https://shop.example/b">look</a></p>' },
  { mjml, text: 'C' },
] as const
const abTest: NonNullable<CreateCampaign['abTest']> = {
  share: 100,
  winnerBy: 'manual',
  variants: ['A', 'B', 'C'].map((name, number) => ({ name, content: contents[number] ?? null })),
}
const html = '<p>A, <a href="https://shop.example/a">look</a></p>'
const draft = (fields: Partial<CreateCampaign> = {}) =>
  world.draft(audience, { content: { html }, trackClicks: true, abTest, ...fields })

const refused = (path: string, code = 'rule_violation') => ({ code, details: [{ path }] })

test('variants are stored with their content, stay when something else is changed, and are in a copy', async () => {
  const id = await draft()
  const first = await campaigns.get(db, live, id)
  const noTemplate = { templateId: null, templateVersion: null }
  expect(first.abTest?.variants).toEqual([
    { name: 'A', subject: null, content: null, ...noTemplate },
    {
      name: 'B',
      subject: null,
      content: { preheader: 'Look', html: contents[1].html, mjml: null, text: null, fallbacks: null },
      ...noTemplate,
    },
    {
      name: 'C',
      subject: null,
      ...noTemplate,
      content: { preheader: null, html: expect.stringContaining('>C</div>'), mjml, text: 'C', fallbacks: null },
    },
  ])
  expect((await campaigns.update(db, live, id, { name: 'Other' })).abTest).toEqual(first.abTest)
  expect((await campaigns.duplicate(db, live, id)).abTest).toEqual(first.abTest)
  const fewer = { ...abTest, variants: [{ name: 'A' }, { name: 'D', subject: 'D' }] }
  const changed = await campaigns.update(db, live, id, { abTest: fewer })
  expect(changed.abTest?.variants).toEqual([
    { name: 'A', subject: null, content: null, ...noTemplate },
    { name: 'D', subject: 'D', content: null, ...noTemplate },
  ])
  expect((await campaigns.update(db, live, id, { abTest: null })).abTest).toBeNull()
  expect(await db.selectFrom('campaign_variants').selectAll().where('campaign_id', '=', id).execute()).toEqual([])
})

test('what is wrong with a variant is said with its place, when it is written and when it is sent', async () => {
  const withB = (b: object) => draft({ abTest: { ...abTest, variants: [{ name: 'A' }, { name: 'B', ...b }] } })
  await expect(withB({ content: {} })).rejects.toMatchObject(refused('body.abTest.variants[1].content.html'))
  await expect(withB({ content: { html: 'b', mjml } })).rejects.toMatchObject(
    refused('body.abTest.variants[1].content.mjml'),
  )
  await expect(withB({ content: { text: 'b'.repeat(1_000_001) } })).rejects.toMatchObject(
    refused('body.abTest.variants[1].content.text'),
  )
  const send = async (b: object) => campaigns.send(db, live, await withB(b), null)
  const fault = (place: string) => refused(`campaign.abTest.variants[1].${place}`, 'template_fault')
  await expect(send({ subject: '{{ a | nothing }}' })).rejects.toMatchObject(fault('subject'))
  await expect(send({ content: { html: '{% if %}' } })).rejects.toMatchObject(fault('content'))
  await expect(send({ content: { mjml: '<mjml><mj-body><mj-nothing/></mj-body></mjml>' } })).rejects.toMatchObject(
    fault('content.mjml'),
  )
})

test('opens and clicks that are not tracked choose no winner, and local times go without a test', async () => {
  await expect(draft({ abTest: { ...abTest, winnerBy: 'opens' } })).rejects.toMatchObject(
    refused('body.abTest.winnerBy'),
  )
  const id = await draft({ abTest: { ...abTest, winnerBy: 'clicks' } })
  await expect(campaigns.update(db, live, id, { trackClicks: false })).rejects.toMatchObject(
    refused('body.abTest.winnerBy'),
  )
  await world.properties.create(db, world.account, { key: 'timezone', type: 'string' })
  const when = { localTime: '2026-12-01T09:00:00', fallbackTimezone: undefined }
  await expect(campaigns.send(db, live, id, when)).rejects.toMatchObject(refused('body.localTime'))
})

test('a variant is rendered and sent as a test by its name', async () => {
  const id = await draft()
  const render = async (variant?: string) => (await campaigns.render(db, live, id, { variant })).html
  expect(await render()).toContain('A, ')
  expect(await render('A')).toContain('A, ')
  expect(await render('B')).toContain('B for Ada')
  expect(await render('C')).toContain('>C</div>')
  const unsaved = await campaigns.render(db, live, id, { variant: 'B', subject: 'New' })
  expect(unsaved).toMatchObject({ subject: 'New', html: expect.stringContaining('B for Ada') })
  await expect(render('D')).rejects.toMatchObject(refused('body.variant'))
  const to = ['Grace <grace@example.org>']
  await expect(campaigns.test(db, live, id, { to, variant: 'D' })).rejects.toMatchObject(refused('body.variant'))
  const [emailId = ''] = await campaigns.test(db, live, id, { to, variant: 'B' })
  const sent = await db.selectFrom('email_contents').select('html').where('email_id', '=', emailId).executeTakeFirst()
  expect(sent?.html).toContain('B for Grace')
  // It tests the message, not the people.
  expect(await db.selectFrom('emails').select(['variant', 'campaign_id']).where('id', '=', emailId).execute()).toEqual([
    { variant: null, campaign_id: null },
  ])
})

test('variants take the place of a template, and of its subject', async () => {
  const { id: templateId } = await world.templates.create(db, world.account, {
    name: 'News',
    subject: 'Of the template',
    html: '<p>Template, {{ season }}</p>',
    variables: [{ name: 'season', type: 'string', fallback: 'spring' }],
  })
  await world.templates.publish(db, live, templateId)
  const variants = [
    { name: 'A' },
    { name: 'B', subject: 'Of B' },
    { name: 'C', content: { html: '<p>Own, {{ season }}</p>' } },
  ]
  const id = await world.draft(audience, { templateId, abTest: { ...abTest, variants } })
  const shown = async (variant: string) => {
    const { subject, html: rendered } = await campaigns.render(db, live, id, { variant })
    return [subject, rendered]
  }
  expect(await shown('A')).toEqual(['Of the template', expect.stringContaining('Template, spring')])
  expect(await shown('B')).toEqual(['Of B', expect.stringContaining('Template, spring')])
  expect((await shown('C'))[0]).toBe('Of the template')
  await world.start(id)
  await world.run()
  const rows = await db
    .selectFrom('emails as e')
    .innerJoin('email_contents as c', 'c.email_id', 'e.id')
    .select(['e.variant', 'e.subject', 'c.html'])
    .where('e.campaign_id', '=', id)
    .execute()
  expect(rows).toHaveLength(people)
  const expected = [
    ['Of the template', 'Template, spring'],
    ['Of B', 'Template, spring'],
    ['Of the template', 'Own, spring'],
  ]
  for (const { variant, subject, html: sent } of rows) {
    const [ofSubject, ofHtml = ''] = expected[variant ?? 3] ?? []
    expect(subject).toBe(ofSubject)
    expect(sent).toContain(ofHtml)
  }
  await world.handOver()
})

test('pages on the web: each recipient reads their variant, and everybody the first, then the winner', async () => {
  const id = await draft({ archive: 'public', abTest: { ...abTest, share: 50 } })
  await world.start(id)
  await world.run()
  const links = await db.selectFrom('campaign_links').select('link').where('campaign_id', '=', id).execute()
  expect(links.map(({ link }) => link)).toEqual(['https://shop.example/a', 'https://shop.example/b'])
  const tokens = createMailTokens(Buffer.alloc(32, 2))
  const pages = createWebPages({
    db,
    tokens,
    rendererOf: world.means.rendererOf,
    archiveUrl: world.means.archiveUrl,
  })
  const read = async (open: (send: (page: WebPage) => Promise<void>) => Promise<void>): Promise<string> => {
    let shown = ''
    await open(async (page) => {
      shown = page.status === 'shown' ? (page.html ?? '') : page.status
    })
    return shown
  }
  const archive = () => {
    const token = tokens.campaignPage({ accountId: world.account, campaignId: id })
    return read((send) => pages.ofCampaign(token, send))
  }
  const emails = await db.selectFrom('emails').select(['id', 'variant']).where('campaign_id', '=', id).execute()
  for (const { id: emailId, variant } of emails) {
    const page = await read((send) => pages.ofEmail(tokens.messagePage({ accountId: world.account, emailId }), send))
    expect(page).toContain(['A, ', 'B for Ada', '>C</div>'][variant ?? 3])
  }
  expect(await archive()).toContain('A, ')
  await world.handOver()
  await world.time.advance(2_000)
  await world.run()
  await campaigns.chooseWinner(db, live, id, 'B')
  expect(await archive()).toContain('B for ')
  await world.run()
  await world.handOver()
  const written = async () => {
    let csv = ''
    for await (const part of await campaigns.exportRecipients(db, live, id)) csv += part
    return csv
  }
  const [head = '', ...rows] = (await written()).trim().split('\r\n')
  const column = head.split(',').indexOf('variant')
  const named = rows.map((row) => row.split(',')[column])
  expect(named).toHaveLength(people)
  expect(named.filter((name) => name === 'B').length).toBeGreaterThanOrEqual(people - emails.length)
})

test('a campaign that is deleted takes its variants with it', async () => {
  const id = await draft()
  await world.start(id)
  await world.run()
  await world.handOver()
  await world.time.advance(2_000)
  await world.run()
  await campaigns.delete(db, live, id)
  await world.run()
  expect(await db.selectFrom('campaign_variants').selectAll().where('campaign_id', '=', id).execute()).toEqual([])
  expect(await db.selectFrom('campaign_recipients').selectAll().where('campaign_id', '=', id).execute()).toEqual([])
})
