import { afterAll, expect, test } from 'vitest'
import { createRenderer, type TemplateContent, type Variables } from '../../server/rendering/renderer.ts'

const renderer = createRenderer()
afterAll(() => renderer[Symbol.asyncDispose]())

const empty: TemplateContent = { subject: 'Hello', preheader: null, html: null, text: null }

/** Renders for one person. Throws the reason of a failure. */
async function render(content: Partial<TemplateContent>, variables: Variables = {}) {
  const [rendering] = await renderer.render({ ...empty, ...content }, [variables])
  if (rendering?.status !== 'rendered') throw new Error(rendering?.reason)
  return rendering.rendered
}

/** Renders for one person and returns the reason of its failure. */
async function reasonOf(content: Partial<TemplateContent>, variables: Variables = {}): Promise<string> {
  const [rendering] = await renderer.render({ ...empty, ...content }, [variables])
  return rendering?.status === 'failed' ? rendering.reason : 'none: it was rendered'
}

const script = '<script>alert("1")</script>'

test('values are escaped in HTML, and not in subject and text', async () => {
  const content = { subject: 'Hi {{ name }}', html: '<p>{{ name }}</p>', text: 'Hi {{ name }}' }
  expect(await render(content, { name: script })).toEqual({
    subject: `Hi ${script}`,
    html: '<p>&lt;script&gt;alert(&#34;1&#34;)&lt;/script&gt;</p>',
    text: `Hi ${script}`,
  })
})

test('values that are missing are empty, and `default` replaces them', async () => {
  expect((await render({ text: '[{{ a.b.c }}] {{ contact.firstName | default: "there" }}' })).text).toBe('[] there')
})

test('values are own properties only', async () => {
  const text = '[{{ a.constructor.name }}{{ a.__proto__ }}{{ constructor }}{{ a.toString }}{{ s.constructor }}]'
  expect((await render({ text }, { a: { x: 1 }, s: 'x' })).text).toBe('[]')
})

test('values cannot be Liquid themselves', async () => {
  expect((await render({ text: '{{ name }}' }, { name: '{{ secret }}', secret: 1 })).text).toBe('{{ secret }}')
})

test('values of each person are seen by that person only', async () => {
  const content = { ...empty, text: '{% if first %}{% assign seen = "yes" %}{% endif %}{{ n }}{{ seen }}' }
  const people = Array.from({ length: 350 }, (_, n) => ({ n, first: n === 0 }))
  const renderings = await renderer.render(content, people)
  expect(renderings.map((one) => one.status === 'rendered' && one.rendered.text)).toEqual(
    people.map(({ n }) => (n === 0 ? '0yes' : String(n))),
  )
})

test('values of more than 512 KiB, or that are no JSON, fail for their person only', async () => {
  const circular: { self?: unknown } = {}
  circular.self = circular
  const people = [{ a: 'x'.repeat(530_000) }, circular, { a: 'ok' }]
  expect(await renderer.render({ ...empty, text: '{{ a }}' }, people)).toEqual([
    { status: 'failed', reason: 'The variables are longer than 524288 bytes of JSON.' },
    { status: 'failed', reason: expect.stringMatching(/^The variables are not JSON: /) },
    { status: 'rendered', rendered: { subject: 'Hello', html: null, text: 'ok' } },
  ])
})

test('values lose U+0000, and half of a surrogate pair', async () => {
  expect((await render({ text: '{{ a }}' }, { a: 'x\u0000y\ud800z' })).text).toBe('xy\ufffdz')
})

test('the subject is one line, whatever is in the values', async () => {
  const subject = '{{ a }}'
  const { subject: rendered } = await render({ subject, text: '' }, { a: 'Hi\r\nBcc: eve@example.com\u2028\u0085\t x' })
  expect(rendered).toBe('Hi Bcc: eve@example.com x')
})

test.each([
  ['empty', {}, 'The subject is empty.'],
  ['longer than a line', { a: 'é'.repeat(500) }, 'The subject becomes longer than 998 octets.'],
])('the subject fails when it is %s', async (_case, variables, reason) => {
  expect(await reasonOf({ subject: '{{ a }}', text: 'x' }, variables)).toBe(reason)
})

const preheader = 'News for {{ a }}'
const block = /<div style="display:none;[^"]*">News for &lt;b&gt;<\/div>/

test.each([
  [
    'behind the tag of the body',
    '<html><body class="{% if a > 1 %}x{% endif %}"><p>Hi</p></body>',
    /class="">(.*?)<p>Hi/,
  ],
  ['behind the head without a body', '<head><title>x</title></head><p>Hi</p>', /<\/head>(.*?)<p>/],
  ['behind the document type', '<!doctype html><p>Hi</p>', /<!doctype html>(.*?)<p>/],
  ['at the start', '<p>Hi</p>', /^(.*?)<p>/],
])('the preheader goes %s, escaped', async (_place, html, expected) => {
  const { html: rendered, text } = await render({ html, preheader }, { a: '<b>' })
  expect(expected.exec(rendered ?? '')?.[1]).toMatch(block)
  expect(text).toBe('Hi')
})

test('the text is made of the HTML: links, lists and paragraphs, with values as they are', async () => {
  const html = [
    '<style>p { color: red }</style><h1>Hello {{ name }}</h1><p>Your <b>order</b> &amp; more</p>',
    '<ul>{% for item in items %}<li>{{ item }}</li>{% endfor %}</ul>',
    '{% if pro %}<p>Pro</p>{% endif %}<a href="https://example.com/{{ id }}">Open</a>',
  ].join('\n')
  const variables = { name: 'A & <B>', items: ['one', 'two'], id: 7 }
  const text = (await render({ html }, variables)).text ?? ''
  expect(text).toContain('Hello A & <B>')
  expect(text).toContain('Your order & more')
  expect(text).toMatch(/ \* one\s+\* two/)
  expect(text).toContain('Open [https://example.com/7]')
  expect(text).not.toMatch(/Pro|color|\{%|\n{3}/)
})

test.each([
  ['values that are HTML', '<p>{{ a | raw }}</p>', 'x y'],
  ['numbers of a list', '<ol>{% for i in (1..2) %}<li>n</li>{% endfor %}</ol>', ' 1. n\n 2. n'.trim()],
  ['tags that are left out', '<style>{% assign b = "kept" %}</style><p>{{ b }}</p>', 'kept'],
  ['braces written as entities', '<p>&#123;&#123; a }}</p>', '{{ a }}'],
])('the text is made of the rendered HTML for %s', async (_case, html, expected) => {
  expect((await render({ html }, { a: '<i>x</i> <b>y</b>' })).text).toBe(expected)
})

test('the text is null for HTML without any', async () => {
  expect((await render({ html: '<img src="https://example.com/x.png">' })).text).toBeNull()
})

test.each([
  [
    'an unknown filter',
    { html: '<p>\n\n  {{ a | nothing }}</p>' },
    /^The HTML, line 3, column 3: undefined filter: nothing$/,
  ],
  ['a tag that is not closed', { text: 'a\n{% if a %}b' }, /^The text, line 2, column 1: tag {% if a %} not closed$/],
  ['an unknown tag', { html: '{% system "ls" %}' }, /^The HTML, line 1, column 1: tag "system" not found$/],
  [
    'an output that is not closed',
    { subject: 'Hi {{ a', text: 'x' },
    /^The subject, line 1, column 4: output .* not closed$/,
  ],
  ['a preheader', { html: '<p>x</p>', preheader: '{{ a | b }}' }, /^The preheader, line 1/],
  ['a file', { text: '{% include "package.json" %}' }, /^The text, line 1, column 1: templates cannot include files/],
  [
    'a file to render',
    { html: '{% render "../../etc/passwd" %}' },
    /^The HTML, line 1, column 1: templates cannot include files/,
  ],
  ['a layout', { html: '{% layout "package.json" %}' }, /^The HTML, line 1, column 1: templates cannot include files/],
])('faults of %s name the part and the line', async (_case, content, reason) => {
  expect(await reasonOf(content)).toMatch(reason)
})

test('faults of one person are told for that person', async () => {
  const text = '{% if bad %}{% for i in (1..900000000) %}x{% endfor %}{% endif %}ok'
  const renderings = await renderer.render({ ...empty, text }, [{}, { bad: true }, {}])
  expect(renderings.map(({ status }) => status)).toEqual(['rendered', 'failed', 'rendered'])
})
