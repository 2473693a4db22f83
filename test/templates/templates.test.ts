import { afterAll, beforeAll, expect, test } from 'vitest'
import { contract } from '../../contract/index.ts'
import type { TestClient } from '../support/client.ts'
import { startTestService, type TestService } from '../support/service.ts'

let service: TestService
let client: TestClient
beforeAll(async () => {
  service = await startTestService({ roles: { worker: false }, maxEmailBodyBytes: 2_000_000 })
  client = service.client
})
afterAll(() => service.stop())

const welcome = {
  name: 'Welcome',
  subject: 'Welcome, {{ firstName }}',
  html: '<p>Hello {{ firstName }}, you have {{ count }}</p>',
  variables: [
    { name: 'firstName', type: 'string' as const, fallback: 'there' },
    { name: 'count', type: 'number' as const, required: true },
  ],
}

async function created(body: Parameters<typeof make>[0] = welcome): Promise<string> {
  return (await make(body)).id
}

function make(body: Record<string, unknown>) {
  return client.succeed(contract.templates.create, { body: { ...welcome, ...body } })
}

async function published(body: Record<string, unknown> = {}): Promise<string> {
  const id = await created(body)
  await publish(id)
  return id
}

function publish(id: string) {
  return client.succeed(contract.templates.publish, { params: { id }, body: {} })
}

const message = { from: 'hello@example.com', to: 'ada@example.com' }

/** Sends with a test key, which sends from any domain. */
function send(body: Record<string, unknown>) {
  return client.send('POST', '/v1/emails', { json: { ...message, ...body }, key: service.keys.test })
}

async function contentOf(id: string) {
  const { subject, html, text } = await client.as(service.keys.test).succeed(contract.emails.get, { params: { id } })
  return { subject, html, text }
}

test('a template is a draft first, and a version when it is published', async () => {
  const template = await make({})
  expect(template).toMatchObject({
    subject: welcome.subject,
    preheader: null,
    text: null,
    publishedVersion: null,
    hasUnpublishedChanges: true,
    variables: [
      { name: 'firstName', type: 'string', required: false, fallback: 'there' },
      { name: 'count', type: 'number', required: true, fallback: null },
    ],
  })
  const { id } = template
  expect(await publish(id)).toMatchObject({ publishedVersion: 1, hasUnpublishedChanges: false })
  expect(await publish(id)).toMatchObject({ publishedVersion: 1 })
  const changed = await client.succeed(contract.templates.update, { params: { id }, body: { text: 'New' } })
  expect(changed).toMatchObject({ publishedVersion: 1, hasUnpublishedChanges: true, text: 'New' })
  expect(await publish(id)).toMatchObject({ publishedVersion: 2, hasUnpublishedChanges: false })
  const versions = await service.database.db
    .selectFrom('template_versions')
    .select(['version', 'text'])
    .where('template_id', '=', id)
    .orderBy('version')
    .execute()
  expect(versions).toEqual([
    { version: 1, text: null },
    { version: 2, text: 'New' },
  ])
})

test('a template is published once by requests at the same time', async () => {
  const id = await created()
  const answers = await Promise.all(Array.from({ length: 5 }, () => publish(id)))
  expect(answers.map(({ publishedVersion }) => publishedVersion)).toEqual([1, 1, 1, 1, 1])
})

test('a template keeps its version when only its name changes', async () => {
  const id = await published()
  const body = { name: 'Renamed', subject: welcome.subject }
  const renamed = await client.succeed(contract.templates.update, { params: { id }, body })
  expect(renamed).toMatchObject({ name: 'Renamed', hasUnpublishedChanges: false })
})

test('a template is not published with a fault, and says where it is', async () => {
  const id = await created({ html: '<p>\n{% if a %}</p>' })
  const answer = await client.send('POST', `/v1/templates/${id}/publish`, { json: {} })
  expect(answer).toMatchObject({ status: 422, body: { error: { code: 'template_fault' } } })
  expect(answer.text).toContain('The HTML, line 2, column 1')
})

test('a template is not published without HTML and text', async () => {
  const id = await created({ html: null })
  const answer = await client.send('POST', `/v1/templates/${id}/publish`, { json: {} })
  expect(answer).toMatchObject({ status: 422, body: { error: { code: 'template_fault' } } })
})

test('a template is gone with its versions when it is deleted', async () => {
  const id = await published()
  await client.succeed(contract.templates.delete, { params: { id } })
  expect((await client.send('GET', `/v1/templates/${id}`)).status).toBe(404)
  expect((await send({ template: { id } })).body).toMatchObject({ error: { code: 'template_not_found' } })
})

test.each([
  ['a fallback of another type', [{ name: 'a', type: 'number', fallback: 'x' }], 'body.variables[0].fallback'],
  [
    'a fallback of what is required',
    [{ name: 'a', type: 'string', required: true, fallback: 'x' }],
    'body.variables[0].fallback',
  ],
  [
    'a name twice',
    [
      { name: 'a', type: 'string' },
      { name: 'a', type: 'string' },
    ],
    'body.variables[1].name',
  ],
])('a template refuses variables with %s', async (_case, variables, path) => {
  const answer = await client.send('POST', '/v1/templates', { json: { ...welcome, variables } })
  expect(answer).toMatchObject({ status: 422, body: { error: { details: [{ path }] } } })
})

test('a template may have 512 KiB of HTML, and no more', async () => {
  const json = { ...welcome, html: 'x'.repeat(524_288) }
  expect((await client.send('POST', '/v1/templates', { json })).status).toBe(201)
  const longer = await client.send('POST', '/v1/templates', { json: { ...json, html: `${json.html}x` } })
  expect(longer).toMatchObject({ status: 400, body: { error: { details: [{ path: 'body.html' }] } } })
})

const render = (id: string, json: Record<string, unknown> = {}) =>
  client.send('POST', `/v1/templates/${id}/render`, { json })

test('a preview has values for variables that are not given, and makes the text', async () => {
  const id = await created({ html: `${welcome.html}<!-- unsubscribeUrl -->` })
  expect((await render(id)).body).toEqual({
    subject: 'Welcome, there',
    html: '<p>Hello there, you have 1</p><!-- unsubscribeUrl -->',
    text: 'Hello there, you have 1',
    errors: [],
    checks: [],
  })
  expect((await render(id, { variables: { firstName: '<Ada>' } })).body).toMatchObject({
    subject: 'Welcome, <Ada>',
    html: expect.stringContaining('<p>Hello &lt;Ada&gt;, you have 1</p>'),
  })
})

test('a preview of a template has sample links in place of those of a campaign, unless others are given', async () => {
  const names = ['unsubscribeUrl', 'preferencesUrl', 'webUrl']
  const html = names.map((name) => `<a href="{{ ${name} }}">{{ ${name} }}</a>`).join('')
  const linksTo = (...links: string[]) => links.map((link) => `<a href="${link}">${link}</a>`).join('')
  const [unsubscribe, web] = ['https://example.com/unsubscribe', 'https://example.com/message']
  const samples = linksTo(unsubscribe, `${unsubscribe}/preferences`, web)
  // A campaign gives them also where they are declared.
  for (const variables of [[], names.map((name) => ({ name, type: 'string', required: true }))]) {
    const { body } = await render(await created({ html, variables }))
    expect(body).toMatchObject({ html: samples, checks: [] })
  }
  const fallback = 'https://shop.test/leave'
  const id = await published({ html, variables: [{ name: 'unsubscribeUrl', type: 'string', fallback }] })
  const given = { version: 'published', variables: { webUrl: 'https://shop.test/web' } }
  const expected = linksTo(fallback, `${unsubscribe}/preferences`, given.variables.webUrl)
  expect((await render(id, given)).body).toMatchObject({ html: expected, checks: [] })
})

test('a preview shows the draft, or the published version', async () => {
  const id = await published()
  await client.succeed(contract.templates.update, { params: { id }, body: { subject: 'Changed' } })
  expect((await render(id)).body).toMatchObject({ subject: 'Changed' })
  expect((await render(id, { version: 'published' })).body).toMatchObject({ subject: 'Welcome, there' })
})

test('a preview names the faults of each part, with their lines', async () => {
  const id = await created({ subject: '{{ a | b }}', html: 'a\n{% c %}', text: 'a\n\n{% if d %}' })
  expect((await render(id)).body).toMatchObject({
    subject: null,
    html: null,
    text: null,
    errors: [
      { part: 'subject', line: 1, message: expect.stringContaining('undefined filter: b') },
      { part: 'html', line: 2, message: expect.stringContaining('tag "c" not found') },
      { part: 'text', line: 3, message: expect.stringContaining('not closed') },
    ],
  })
})

test('a preview notes what is not good about the message', async () => {
  const html = [
    '<img src="https://example.com/a.png" width="1">',
    '<p>',
    '<div><b>open</div>',
    '<a href="https://evil.example/x">https://bank.example/login</a>',
    '<a href="http://192.0.2.1/">Pay</a>',
    '<a href="javascript:alert(1)">x</a>',
    '<a href="https://www.example.com/x">www.example.com/x</a>',
    'x'.repeat(110_000),
  ].join('\n')
  const body = (await render(await created({ html }))).body as { checks: { code: string; line: number | null }[] }
  expect(body.checks.map(({ code, line }) => [code, line])).toEqual([
    ['too_large', null],
    ['image_without_size', 1],
    ['broken_html', 3],
    ['suspicious_link', 4],
    ['suspicious_link', 5],
    ['suspicious_link', 6],
    ['no_unsubscribe_link', null],
  ])
})

test('a preview notes that a message without words has no text part', async () => {
  const html = '<img src="https://example.com/a.png" width="1" height="1">'
  const body = (await render(await created({ html }))).body as { checks: { code: string }[] }
  expect(body.checks.map(({ code }) => code)).toContain('no_text')
})

test('an email of a template has the rendered content, with fallbacks', async () => {
  const id = await published({ text: 'Hi {{ firstName }}: {{ more.list[0] }}' })
  const answer = await send({ template: { id, variables: { count: 2, more: { list: ['one'] } } } })
  expect(answer.status).toBe(202)
  expect(await contentOf(Object(answer.body).id)).toEqual({
    subject: 'Welcome, there',
    html: '<p>Hello there, you have 2</p>',
    text: 'Hi there: one',
  })
})

test('an email of a template has the published version, not the draft', async () => {
  const id = await published()
  await client.succeed(contract.templates.update, { params: { id }, body: { subject: 'Draft' } })
  const answer = await send({ template: { id, variables: { count: 1 } } })
  expect(await contentOf(Object(answer.body).id)).toMatchObject({ subject: 'Welcome, there' })
})

test('an email of a template has no headers of the values of its subject', async () => {
  const id = await published({ variables: [] })
  const answer = await send({ template: { id, variables: { firstName: 'Ada\r\nBcc: eve@example.com' } } })
  expect((await contentOf(Object(answer.body).id)).subject).toBe('Welcome, Ada Bcc: eve@example.com')
})

test.each([
  ['a variable that is missing', {}, 'rule_violation', 'body.template.variables.count'],
  ['a variable of another type', { count: '1' }, 'rule_violation', 'body.template.variables.count'],
  ['more values than there may be', { count: 1, a: 'x'.repeat(66_000) }, undefined, undefined],
])('an email of a template is refused for %s', async (_case, variables, code, path) => {
  const answer = await send({ template: { id: await published(), variables } })
  expect(answer.status).toBe(422)
  if (code !== undefined) expect(answer).toMatchObject({ body: { error: { code, details: [{ path }] } } })
})

test('an email of a template is refused with content of its own', async () => {
  const answer = await send({ subject: 'Hi', text: 'Hi', template: { id: await published() } })
  expect(answer).toMatchObject({
    status: 422,
    body: { error: { details: [{ path: 'body.subject' }, { path: 'body.text' }] } },
  })
})

test('an email of a template is refused without a subject where there is no template', async () => {
  expect(await send({ text: 'Hi' })).toMatchObject({
    status: 422,
    body: { error: { details: [{ path: 'body.subject' }] } },
  })
})

test('an email of a template is refused while the template was never published, and of another account', async () => {
  const draft = await send({ template: { id: await created() } })
  expect(draft).toMatchObject({ status: 422, body: { error: { code: 'template_not_found' } } })
  const json = { ...message, template: { id: await published(), variables: { count: 1 } } }
  const foreign = await client.send('POST', '/v1/emails', { json, key: service.keys.other })
  expect(foreign).toMatchObject({ status: 422, body: { error: { code: 'template_not_found' } } })
})

test('an email of a template is refused with the reason when it cannot be rendered', async () => {
  const id = await published({ html: '<p>\n{% for i in (1..n) %}x{% endfor %}', variables: [] })
  const answer = await send({ template: { id, variables: { n: 1_000_000_000 } } })
  expect(answer).toMatchObject({ status: 422, body: { error: { code: 'template_fault' } } })
  expect(answer.text).toContain('The HTML, line 2')
})

test('a batch of templates and others is answered in order', async () => {
  const [one, two] = [await published(), await published({ subject: 'Two', variables: [] })]
  const emails = [
    { ...message, template: { id: one, variables: { count: 1 } } },
    { ...message, subject: 'Own', text: 'Own' },
    { ...message, template: { id: one } },
    { ...message, template: { id: two } },
    { ...message, template: { id: await created() } },
    { ...message, template: { id: one, variables: { count: 2, firstName: 'Bob' } } },
  ]
  const answer = await client.send('POST', '/v1/emails/batch?mode=permissive', {
    json: { emails },
    key: service.keys.test,
  })
  expect(answer.status).toBe(202)
  const { data, errors } = answer.body as {
    data: { index: number; id: string }[]
    errors: { index: number; code: string; details: { path: string }[] }[]
  }
  expect(errors.map(({ index, code, details: [detail] }) => [index, code, detail?.path])).toEqual([
    [2, 'rule_violation', 'body.emails[2].template.variables.count'],
    [4, 'template_not_found', 'body.emails[4].template.id'],
  ])
  const subjects = await Promise.all(data.map(async ({ index, id }) => [index, (await contentOf(id)).subject]))
  expect(subjects).toEqual([
    [0, 'Welcome, there'],
    [1, 'Own'],
    [3, 'Two'],
    [5, 'Welcome, Bob'],
  ])
})

test('a batch is refused as a whole when one template cannot be used', async () => {
  const emails = [
    { ...message, subject: 'Own', text: 'Own' },
    { ...message, template: { id: await created() } },
  ]
  const answer = await client.send('POST', '/v1/emails/batch', { json: { emails }, key: service.keys.test })
  expect(answer).toMatchObject({ status: 422, body: { error: { code: 'template_not_found' } } })
})
