import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  alignments,
  type Block,
  blockLimit,
  blockOnLine,
  blocksOfMjml,
  firstMjml,
  htmlForBrowser,
  htmlWithLiquid,
  mjmlOfBlocks,
  newBlocks,
} from '../../server/dashboard/components/blocks/mail-blocks.ts'
import { compileMjml } from '../../server/rendering/mjml.ts'

const piece = fc.oneof(
  fc.constantFrom(
    '{{ contact.firstName | default: "you & <me>" }}',
    '{% if a > "1" %}',
    '{% endif %}',
    '{{',
    '}}',
    '"',
  ),
  fc.constantFrom('&amp;', '&', '<b>', '>', "'", '</mj-text>', ' { ', 'é😀', ' ', '&lt;script&gt;'),
  fc.string({ maxLength: 5 }).map((text) => text.replace(/[{}%\n\r\u2028\u2029\ue000\ue001]/g, '')),
)
// A tag that begins in one field and ends in the next one is a tag for the service too.
const text = fc
  .array(piece, { maxLength: 5 })
  .map((pieces) => pieces.join(''))
  .filter((made) => !/\{\{|\}\}|\{%|%\}/.test(made.replace(/\{\{.*?\}\}|\{%.*?%\}/g, '')))
const digits = fc.nat(900).map(String)
const align = fc.constantFrom(...alignments)
const html = fc
  .array(
    fc.constantFrom(
      '<p>Hello <strong>you</strong></p>',
      '<ul><li><p>a &lt; b</p></li></ul>',
      '<ol start="3" type="a"><li><p>c</p></li></ol>',
      '<p><a href="{{ unsubscribeUrl }}">x</a><br></p>',
    ),
  )
  .map((parts) => parts.join(''))
const block: fc.Arbitrary<Block> = fc.oneof(
  fc.record({ kind: fc.constant('heading' as const), text, level: fc.constantFrom(1 as const, 2 as const), align }),
  fc.record({ kind: fc.constant('text' as const), html, align }),
  fc.record({
    kind: fc.constant('image' as const),
    src: text,
    alt: text,
    width: fc.oneof(fc.constant(''), digits),
    href: text,
  }),
  fc.record({ kind: fc.constant('button' as const), text, href: text, align }),
  fc.constant({ kind: 'divider' as const }),
  fc.record({ kind: fc.constant('space' as const), height: digits }),
)
const colour = fc.integer({ min: 0, max: 0xffffff }).map((value) => `#${value.toString(16).padStart(6, '0')}`)
const message = fc.record({ background: colour, buttonColor: colour, blocks: fc.array(block, { maxLength: 8 }) })

test('blocks that are written as MJML are read back as they were', () => {
  fc.assert(fc.property(message, (made) => void expect(blocksOfMjml(mjmlOfBlocks(made))).toEqual(made)))
})

test('each block has a line of the MJML, by which a fault finds it', () => {
  fc.assert(
    fc.property(message, (made) => {
      const lines = mjmlOfBlocks(made).split('\n')
      const found = lines.map((_, index) => blockOnLine(made, index + 1)).filter((index) => index !== undefined)
      expect(found).toEqual(made.blocks.map((_, index) => index))
      expect(lines[11 + made.blocks.length]?.trim()).toBe('</mj-column>')
      expect(blockOnLine(made, null)).toBeUndefined()
    }),
  )
})

test('each block is MJML without a fault, and its text and Liquid are in the HTML', async () => {
  const name = '{{ contact.firstName | default: "you" }}'
  const { html: compiled, faults } = await compileMjml(
    mjmlOfBlocks({
      background: '#f4f4f5',
      buttonColor: '#1d4ed8',
      blocks: [
        { ...newBlocks.heading, text: `Hello ${name} & <b>` },
        { ...newBlocks.text, html: `<p>Dear ${name}</p>` },
        {
          ...newBlocks.image,
          src: 'https://a.example/b.png?c=1&d=2',
          alt: 'A "picture"',
          width: '300',
          href: 'https://a.example/',
        },
        { ...newBlocks.button, text: 'Go', href: 'https://a.example/{{ contact.email }}' },
        newBlocks.divider,
        newBlocks.space,
      ],
    }),
  )
  expect(faults).toBeNull()
  for (const part of [
    `<h1>Hello ${name} &amp; &lt;b&gt;</h1>`,
    `<p>Dear ${name}</p>`,
    'https://a.example/b.png?c=1&amp;d=2',
    'A &quot;picture&quot;',
    'https://a.example/{{ contact.email }}',
    '#1d4ed8',
    '#f4f4f5',
  ]) {
    expect(compiled).toContain(part)
  }
})

test.each([
  ['another element', (mjml: string) => mjml.replace('<mj-text', '<mj-raw')],
  [
    'an attribute of its own',
    (mjml: string) => mjml.replace('<mj-text align="left"', '<mj-text align="left" color="red"'),
  ],
  ['a table in a text', (mjml: string) => mjml.replace('<p>Hello,</p>', '<table><tr><td>a</td></tr></table>')],
  ['a style in a text', (mjml: string) => mjml.replace('<p>Hello,</p>', '<p style="color:red">Hello,</p>')],
  ['a second section', (mjml: string) => mjml.replace('  </mj-body>', '    <mj-section></mj-section>\n  </mj-body>')],
  ['Liquid between blocks', (mjml: string) => mjml.replace('        <mj-text', '        {% if a %}\n        <mj-text')],
  ['no end', (mjml: string) => mjml.slice(0, -10)],
  ['nothing at all', () => ''],
])('MJML with %s is not shown as blocks, which would lose it', (_, change) => {
  expect(blocksOfMjml(firstMjml)).not.toBeNull()
  expect(blocksOfMjml(change(firstMjml))).toBeNull()
})

test('MJML with more blocks than are shown is edited as MJML', () => {
  const of = (count: number) =>
    mjmlOfBlocks({ background: '#ffffff', buttonColor: '#000000', blocks: Array(count).fill(newBlocks.divider) })
  expect(blocksOfMjml(of(blockLimit))?.blocks).toHaveLength(blockLimit)
  expect(blocksOfMjml(of(blockLimit + 1))).toBeNull()
})

test('a line of beginnings of Liquid without an end is looked through once', () => {
  // Looked through for each of them, it would take minutes.
  const line = '{{ {% '.repeat(200_000)
  const html = `<p>${line}</p>`
  expect(htmlWithLiquid(html)).toBe(html)
  expect(blocksOfMjml(firstMjml.replace('Hello,', line))?.blocks[1]).toMatchObject({ kind: 'text' })
})

test('Liquid in the HTML of a browser stands as it was typed, and what is no Liquid stays escaped', () => {
  const typed = '<p>{% if a > 1 and b < "2" %}x &amp; &lt;y{% endif %}</p>'
  const shown = '<p>{% if a &gt; 1 and b &lt; &quot;2&quot; %}x &amp; &lt;y{% endif %}</p>'
  expect(htmlForBrowser(typed)).toBe(shown)
  expect(htmlWithLiquid(shown)).toBe(typed)
})
