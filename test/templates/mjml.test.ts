import { afterAll, beforeAll, expect, test } from 'vitest'
import { contract } from '../../contract/index.ts'
import type { TestClient } from '../support/client.ts'
import { startTestService, type TestService } from '../support/service.ts'

let service: TestService
let client: TestClient
beforeAll(async () => {
  service = await startTestService({ roles: { worker: false } })
  client = service.client
})
afterAll(() => service.stop())

const column = (inner: string) =>
  `<mjml>\n<mj-body>\n<mj-section>\n<mj-column>\n${inner}\n</mj-column>\n</mj-section>\n</mj-body>\n</mjml>`
const good = column('<mj-text>Hello {{ name }} {{ unsubscribeUrl }}</mj-text>')
const bad = column('<mj-text foo="1">Hello</mj-text>')

const make = (body: Record<string, unknown> = {}) =>
  client.succeed(contract.templates.create, { body: { name: 'News', subject: 'News', ...body } })
const update = (id: string, body: Record<string, unknown>) =>
  client.succeed(contract.templates.update, { params: { id }, body })

test('a template of MJML is compiled when it is stored, and rendered for each email', async () => {
  const { id, html, mjml } = await make({ mjml: good })
  expect(mjml).toBe(good)
  expect(html).toContain('Hello {{ name }}')
  await client.succeed(contract.templates.publish, { params: { id }, body: {} })
  const json = { from: 'a@example.com', to: 'b@example.com', template: { id, variables: { name: '<Ada>' } } }
  const sent = await client.send('POST', '/v1/emails', { json, key: service.keys.test })
  const params = { id: Object(sent.body).id }
  const email = await client.as(service.keys.test).succeed(contract.emails.get, { params })
  expect(email.html).toContain('Hello &lt;Ada&gt;')
  expect(email.text).toMatch(/^Hello <Ada>/)
})

test('a template of MJML gives way to HTML, and HTML to it', async () => {
  const { id, html } = await make({ mjml: good })
  expect(await update(id, { subject: 'Other' })).toMatchObject({ mjml: good, html })
  expect(await update(id, { mjml: null })).toMatchObject({ mjml: null, html })
  expect(await update(id, { mjml: good })).toMatchObject({ mjml: good, html })
  expect(await update(id, { html: '<p>Hi</p>' })).toMatchObject({ mjml: null, html: '<p>Hi</p>' })
})

test('a template of MJML is refused beside HTML', async () => {
  const json = { name: 'News', subject: 'News', html: '<p>Hi</p>', mjml: good }
  expect(await client.send('POST', '/v1/templates', { json })).toMatchObject({
    status: 422,
    body: { error: { code: 'rule_violation', details: [{ path: 'body.mjml' }] } },
  })
})

test('a template of MJML may be stored with faults, which the preview and publishing name by line', async () => {
  const { id, html } = await make({ mjml: bad, subject: '{{ a | nope }}' })
  expect(html).toBeNull()
  const preview = await client.succeed(contract.templates.render, { params: { id }, body: {} })
  const message = 'The MJML, line 5: <mj-text>: Attribute foo is illegal.'
  expect(preview.errors).toEqual([
    { part: 'mjml', line: 5, message },
    { part: 'subject', line: 1, message: expect.stringContaining('undefined filter: nope') },
  ])
  expect(await client.send('POST', `/v1/templates/${id}/publish`, { json: {} })).toMatchObject({
    status: 422,
    body: { error: { code: 'template_fault', details: [{ path: 'mjml', message }] } },
  })
})

test('a template of MJML has the lines of its source where a rendering fails', async () => {
  const { id } = await make({ mjml: column('\n\n<mj-text>{% for i in (1..n) %}x{% endfor %}</mj-text>') })
  const body = { variables: { n: 5_000_000 } }
  const { errors } = await client.succeed(contract.templates.render, { params: { id }, body })
  expect(errors).toEqual([{ part: 'mjml', line: 7, message: expect.stringMatching(/^The MJML, line 7/) }])
})

async function campaign(content: Record<string, unknown>): Promise<string> {
  const audience = await client.succeed(contract.audiences.create, { body: { name: 'News' } })
  const body = { name: 'News', audienceId: audience.id, from: 'a@example.com', subject: 'Hi {{ contact.firstName }}' }
  return (await asTest().succeed(contract.campaigns.create, { body: { ...body, content } })).id
}
const asTest = () => client.as(service.keys.test)
const render = (id: string, body: Record<string, unknown> = {}) =>
  asTest().succeed(contract.campaigns.render, { params: { id }, body })

test('the preview of a campaign shows stored content to a sample, and content that is not stored', async () => {
  const id = await campaign({ mjml: good, preheader: null })
  const stored = await render(id)
  expect(stored).toMatchObject({ subject: 'Hi Ada', errors: [], checks: [] })
  expect(stored.html).toContain('https://example.com/unsubscribe')
  const content = { html: '<p>{{ contact.email }}</p>' }
  expect(await render(id, { subject: 'New', content })).toMatchObject({
    subject: 'New',
    html: '<p>ada@example.org</p>',
    text: 'ada@example.org',
    checks: [{ code: 'no_unsubscribe_link' }],
  })
  expect((await asTest().succeed(contract.campaigns.get, { params: { id } })).content.mjml).toBe(good)
})

test('the preview of a campaign shows it to a person, for who may read contacts', async () => {
  const id = await campaign({ text: '{{ contact.firstName }} {{ contact.email }}' })
  const person = { email: 'grace@example.org', firstName: 'Grace' }
  const { id: subscriberId } = await client.succeed(contract.subscribers.create, { body: person })
  expect((await render(id, { subscriberId })).text).toBe('Grace grace@example.org')
  const body = { name: 'Reader', permissions: ['campaigns:read' as const] }
  const { key } = await asTest().succeed(contract.apiKeys.create, { body })
  const path = `/v1/campaigns/${id}/render`
  expect(await client.send('POST', path, { json: {}, key })).toMatchObject({ status: 200 })
  expect(await client.send('POST', path, { json: { subscriberId }, key })).toMatchObject({
    status: 401,
    body: { error: { message: expect.stringContaining('contacts:read') } },
  })
})

test('the preview of a campaign names faults by part and line', async () => {
  const id = await campaign({ text: 'Hello' })
  const content = { mjml: bad, text: '\n{% include "a" %}' }
  expect((await render(id, { content })).errors).toEqual([
    { part: 'mjml', line: 5, message: expect.stringContaining('Attribute foo is illegal') },
    { part: 'text', line: 2, message: expect.stringContaining('templates cannot include files') },
  ])
  const variables = { contact: 1 }
  expect((await render(id, { variables })).errors).toEqual([
    { part: 'variables', line: null, message: 'contact: is given by the campaign itself; choose another name.' },
  ])
})

test('the preview of a campaign with both HTML and MJML is refused', async () => {
  const id = await campaign({ text: 'Hello' })
  const json = { content: { html: '<p>Hi</p>', mjml: good } }
  expect(await client.send('POST', `/v1/campaigns/${id}/render`, { json, key: service.keys.test })).toMatchObject({
    status: 422,
    body: { error: { details: [{ path: 'body.content.mjml' }] } },
  })
})

test('a campaign of MJML with faults can be stored, and not sent', async () => {
  const id = await campaign({ mjml: bad })
  const send = (what: string, json: unknown) =>
    client.send('POST', `/v1/campaigns/${id}/${what}`, { json, key: service.keys.test })
  const path = 'campaign.content.mjml'
  expect(await send('send', {})).toMatchObject({
    status: 422,
    body: { error: { code: 'template_fault', details: [{ path }] } },
  })
  expect(await send('test', { to: ['ada@example.com'] })).toMatchObject({
    status: 422,
    body: { error: { code: 'rule_violation', details: [{ path }] } },
  })
  const content = { mjml: good }
  const mended = await asTest().succeed(contract.campaigns.update, { params: { id }, body: { content } })
  expect(mended.content.html).toContain('Hello {{ name }}')
  expect(await send('send', {})).toMatchObject({ status: 202 })
})
