import fc from 'fast-check'
import { expect, test } from 'vitest'
import { linksIn } from '../../server/campaigns/links.ts'
import { createLiquid } from '../../server/rendering/liquid.ts'
import { linkMatcher, liquidIn } from '../../server/statistics/campaign-links.ts'

test('the links of HTML are the web links as they were written, with their Liquid, each once and in order', () => {
  const html = `
      <a href="https://shop.example/a?x=1&amp;y=2">A</a> <a href='https://shop.example/b'>B</a>
      {% if properties.plan == "pro" %}<a href="https://shop.example/{{ properties.plan | default: "free" }}/c">C</a>{% endif %}
      <a href="{{ season }}">D</a> <a href="https://shop.example/b">B again</a>
      <a href="{{ unsubscribeUrl }}">1</a> <a href="{{preferencesUrl}}">2</a> <a href="{{- webUrl | escape -}}">3</a>
      <a href="mailto:ada@example.org">mail</a> <a href="#top">top</a> <!-- <a href="https://shop.example/no">no</a> -->`
  expect(linksIn(html)).toEqual([
    'https://shop.example/a?x=1&y=2',
    'https://shop.example/b',
    'https://shop.example/{{ properties.plan | default: "free" }}/c',
    '{{ season }}',
  ])
})

test('the links of HTML leave out what is longer than a tracked link may be', () => {
  expect(linksIn(`<a href="https://shop.example/${'a'.repeat(2_000)}">A</a>`)).toEqual([])
})

const links = [
  '{{ season }}',
  'https://shop.example/{{ contact.id }}',
  'https://shop.example/{{ a }}/end',
  'https://b.example/',
]
const number = linkMatcher(links.map((link, index) => ({ number: index + 1, link })))

test.each([
  ['https://b.example/', 4],
  ['https://shop.example/sub_1', 2],
  ['https://shop.example/anything/end', 3],
  ['https://other.example/', 1],
])('a click on %s counts for the link with most text in common', (rendered, expected) => {
  expect(number(rendered)).toBe(expected)
})

test.each([
  ['https://x.example/vip', 1],
  ['https://x.example/all', 1],
  ['https://x.example/ada/vip/a?b=7', 2],
  ['https://x.example/ada/all/a?b=', 2],
  ['https://x.example/c/', 3],
  ['https://x.example/c/123', 3],
  ['https://x.example/ada/vip/b?b=7', 1],
  ['https://y.example/vip', null],
])('a click on %s counts for the link with a condition in it', (rendered, expected) => {
  const condition = '{% if properties.vip %}vip{% else %}all{% endif %}'
  const some = linkMatcher(
    [
      `https://x.example/${condition}`,
      `https://x.example/{{ name }}/${condition}/a?b={{ b }}`,
      'https://x.example/c/{% for n in numbers %}{{ n }}{% endfor %}',
    ].map((link, index) => ({ number: index + 1, link })),
  )
  expect(some(rendered)).toBe(expected)
})

test.each([
  'https://x.example/ {%- if vip -%} vip {%- else -%} all {%- endif -%} /a',
  'https://x.example/ {{- name -}} /a?b= {%- if vip %} c{% endif -%}  #d',
  '{%- if vip %}https://x.example/vip{% else %}https://x.example/all{% endif -%} ?q',
  'https://x.example/{{ name }} {%- comment -%} no {%- endcomment -%} /a',
])('a click on %s counts for it, whose tags take white space away', async (link) => {
  const engine = createLiquid({ isEscaped: false })
  const find = linkMatcher([
    { number: 3, link: 'https://y.example/ {{- name }}' },
    { number: 5, link },
  ])
  for (const vip of [true, false]) expect(find(await engine.parseAndRender(link, { vip, name: 'ada' }))).toBe(5)
})

test('a click counts for no link when none fits', () => {
  const some = linkMatcher([{ number: 1, link: 'https://shop.example/{{ a }}b{{ c }}b' }])
  expect(some('https://shop.example/xbyb')).toBe(1)
  for (const other of ['https://shop.example/xb', 'https://shop.example/b', 'https://shop.exampl/bb']) {
    expect(some(other)).toBeNull()
  }
})

test('a click finds the link that it was made of, whatever was filled in', () => {
  const text = fc.string({ unit: fc.constantFrom('a', 'b', '/', '?'), maxLength: 6 })
  fc.assert(
    fc.property(
      fc.array(text, { minLength: 2, maxLength: 5 }),
      fc.array(text, { minLength: 5, maxLength: 5 }),
      (texts, values) => {
        const rendered = texts.map((one, index) => (index === 0 ? one : `${values[index]}${one}`)).join('')
        expect(linkMatcher([{ number: 7, link: texts.join('{{ x }}') }])(rendered)).toBe(7)
      },
    ),
  )
})

test('outputs and tags of Liquid are found once, and what is not closed is text', () => {
  const source = 'a{{ b }}c{% d %}{{ e'
  expect(liquidIn(source).map(({ start, end }) => source.slice(start, end))).toEqual(['{{ b }}', '{% d %}'])
  expect(liquidIn('{{'.repeat(200_000))).toEqual([])
})
