import { afterAll, expect, test } from 'vitest'
import { createRenderer } from '../../server/rendering/renderer.ts'

const renderer = createRenderer()
afterAll(() => renderer[Symbol.asyncDispose]())

/** MJML with a body. */
const body = (inner: string) => `<mjml>\n<mj-body>\n${inner}\n</mj-body>\n</mjml>`
/** MJML with a column, whose content begins at line 5. */
const column = (inner: string) => body(`<mj-section>\n<mj-column>\n${inner}\n</mj-column>\n</mj-section>`)

/** Compiles MJML. Throws its faults. */
async function compile(mjml: string): Promise<string> {
  const { html, faults } = await renderer.compileMjml(mjml)
  if (html === null) throw new Error(JSON.stringify(faults))
  return html
}

async function faultsOf(mjml: string) {
  return (await renderer.compileMjml(mjml)).faults
}

test('MJML becomes HTML, without fonts that are fetched from others', async () => {
  const html = await compile(column('<mj-text>Hello</mj-text>'))
  expect(html).toMatch(/^\s*<!doctype html>/i)
  expect(html).toContain('>Hello</div>')
  expect(html).not.toContain('https://')
})

test('MJML keeps Liquid in texts, attributes, styles and around elements', async () => {
  const html = await compile(
    `<mjml><mj-head><mj-style>.a { color: {{ properties.color }} }</mj-style></mj-head><mj-body>
        <mj-raw>{% for item in items %}</mj-raw>
        <mj-section background-color="{{ properties.color | default: "#fff" }}"><mj-column>
          <mj-text color="{{ properties.color }}">{% if a < b %}{{ contact.firstName | default: "you" }}{% endif %}</mj-text>
          <mj-image src="https://example.com/a.png" alt="" />
          <mj-button href="{{ unsubscribeUrl }}?a={% if a %}1{% else %}2{% endif %}">Leave</mj-button>
        </mj-column></mj-section>
        <mj-raw>{% endfor %}</mj-raw>
      </mj-body></mjml>`,
  )
  expect(html).toContain('.a { color: {{ properties.color }} }')
  expect(html).toContain('background-color:{{ properties.color | default: "#fff" }}')
  expect(html).toContain('{% if a < b %}{{ contact.firstName | default: "you" }}{% endif %}')
  expect(html).toContain('href="{{ unsubscribeUrl }}?a={% if a %}1{% else %}2{% endif %}"')
  const variables = { items: [1, 2], a: 1, b: 2, properties: { color: '#0a0' } }
  const content = { subject: 'Hello', preheader: null, html, text: null }
  const [rendering] = await renderer.render(content, [variables])
  if (rendering?.status !== 'rendered') throw new Error(rendering?.reason)
  expect(rendering.rendered.html?.match(/>you<\/div>/g)).toHaveLength(2)
  expect(rendering.rendered.text).toContain('Leave')
})

test.each([
  ['/etc/hostname', '/etc/hostname'],
  ['a relative path', './child.ts'],
  ['a path beside the packages', '../../package.json'],
])('MJML cannot include %s', async (_what, path) => {
  expect(await faultsOf(column(`<mj-include path="${path}" type="html" />`))).toEqual([
    { line: 5, message: 'MJML cannot include files: write the content here.' },
  ])
})

test.each([
  ['an attribute that there is none of', '<mj-text foo="1">x</mj-text>', 5, '<mj-text>: Attribute foo is illegal.'],
  ['an element that there is none of', '\n<mj-foo>x</mj-foo>', 6, "<mj-foo>: Element mj-foo doesn't exist"],
  ['an element that is not closed', '\n<mj-text>x', 6, '<mj-text> is not closed.'],
  ['text between elements', '\n\nText', 7, 'put it into <mj-text>'],
  ['Liquid between elements', '\n{% if a %}<mj-text>x</mj-text>{% endif %}', 6, 'put it into <mj-raw>'],
  ['Liquid in a length', '<mj-text font-size="{{ size }}">x</mj-text>', 5, 'Liquid cannot stand here'],
  ['Liquid that is not closed', '\n<mj-text>{% if a %}</mj-text>', 6, 'tag {% if a %} not closed'],
  ['a filter that there is none of', '\n<mj-text>{{ a | nope }}</mj-text>', 6, 'undefined filter: nope'],
])('MJML with %s is refused at its line', async (_what, inner, line, message) => {
  expect((await faultsOf(column(inner)))?.[0]).toEqual({ line, message: expect.stringContaining(message) })
})

test('MJML has the lines of its source where Liquid takes several', async () => {
  const inner = '<mj-text>{% if a\n and b\n %}x{% endif %}</mj-text>\n<mj-text foo="1">x</mj-text>'
  expect((await faultsOf(column(inner)))?.[0]?.line).toBe(8)
})

test.each([
  ['nothing', ''],
  ['text alone', 'Hello'],
  ['HTML', '<html><body>x</body></html>'],
  ['no body', '<mjml></mjml>'],
])('MJML of %s is refused', async (_what, mjml) => {
  expect((await faultsOf(mjml))?.[0]?.message).toMatch(/must be one <mjml> with an <mj-body>/)
})

test('MJML with a name that stands for a prototype changes no prototype', async () => {
  const names = '<__proto__ a="1" /><mj-class name="__proto__" a="2" /><mj-all __proto__="3" constructor="a" />'
  await faultsOf(`<mjml><mj-head><mj-attributes>${names}</mj-attributes></mj-head><mj-body></mj-body></mjml>`)
  expect(await compile(column('<mj-text>Hello</mj-text>'))).not.toMatch(/ a="/)
})

const many = (count: number, of: (index: number) => string) => Array.from({ length: count }, (_, i) => of(i)).join('')

test.each([
  ['deep nesting', body(`${'<mj-wrapper>'.repeat(20_000)}${'</mj-wrapper>'.repeat(20_000)}`), /nested more than 256/],
  ['deep HTML', column(`<mj-text>${'<div>'.repeat(40_000)}</mj-text>`), /nested more than 256/],
  ['half a megabyte of attributes', column(`<mj-text ${many(40_000, (i) => `a${i}="x" `)}>x</mj-text>`), /attributes/],
  ['many elements', column('<mj-text>x</mj-text>'.repeat(20_000)), /more than 2000 elements/],
  ['many tags of Liquid', column(`<mj-text>${'{{a}}'.repeat(20_000)}</mj-text>`), /more than 10000 tags/],
  ['a long source', column(`<mj-text>${'x'.repeat(600_000)}</mj-text>`), /more than 524288 characters/],
  ['a long output', column(`<mj-text>${'x'.repeat(900)}</mj-text>`.repeat(550)), /longer than 524288 characters/],
  [
    'entities of its own',
    `<!DOCTYPE x [<!ENTITY a "aa"><!ENTITY b "&a;&a;">]>${column('<mj-text>&b;</mj-text>')}`,
    null,
  ],
  ['half a million entities', column(`<mj-text>${'&amp;'.repeat(100_000)}</mj-text>`), null],
  ['half a million brackets', column(`<mj-text>${'<'.repeat(500_000)}</mj-text>`), null],
  ['many unclosed comments', column(`<mj-text>${'<!--'.repeat(100_000)}</mj-text>`), null],
])('hostile MJML is refused, and the next one compiled: %s', async (_what, mjml, refusal) => {
  const faults = await faultsOf(mjml)
  if (refusal !== null) expect(faults?.[0]?.message).toMatch(refusal)
  expect(faults?.length ?? 0).toBeLessThanOrEqual(10)
  expect(await compile(column('<mj-text>Hello</mj-text>'))).toContain('Hello')
})

test('hostile MJML is refused, and the next one compiled: what takes too long', async () => {
  await using hasty = createRenderer({ mjmlLimitMs: 20 })
  const rules = many(7_000, (i) => `.c${i} div a{color:red}`)
  const style = `<mj-head><mj-style inline="inline">${rules}</mj-style></mj-head>`
  const mjml = column('<mj-text>x</mj-text>'.repeat(1_500)).replace('<mj-body>', `${style}<mj-body>`)
  expect(await hasty.compileMjml(mjml)).toEqual({
    html: null,
    faults: [{ line: null, message: 'Compiling the MJML takes longer than 0.02 s: write less of it.' }],
  })
})

test.each(['include', 'render', 'layout'])('Liquid cannot include files, and %s says so', async (tag) => {
  const content = { subject: 'x', preheader: null, html: null, text: `\n{% ${tag} "a" %}` }
  expect(await renderer.faultOf(content)).toBe(
    `The text, line 2, column 1: templates cannot include files, so there is no "${tag}": write the content here.`,
  )
})
