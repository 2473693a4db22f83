import { afterAll, describe, expect, test } from 'vitest'
import { createRenderer, type TemplateContent } from '../../server/rendering/renderer.ts'

const renderer = createRenderer()
afterAll(() => renderer[Symbol.asyncDispose]())

const empty: TemplateContent = { subject: 'Hello', preheader: null, html: null, text: null }

/** Renders a hostile text for the second of three people, and returns the reason of its failure. */
async function reasonAmongOthers(hostile: string, part: 'html' | 'text' = 'text'): Promise<string> {
  const source = `{% if hostile %}${hostile}{% endif %}fine`
  const renderings = await renderer.render({ ...empty, [part]: source }, [{}, { hostile: true, list }, {}])
  const [before, of, after] = renderings
  for (const other of [before, after]) {
    expect(other).toMatchObject({ status: 'rendered', rendered: { [part]: 'fine' } })
  }
  return of?.status === 'failed' ? of.reason : `none: ${of?.rendered[part]?.slice(0, 100)}`
}

/** Values that are as much as variables may be. */
const list = Array.from({ length: 40_000 }, (_, n) => `${n % 2 === 0 ? 'a' : 'B'}${(n * 7_919) % 40_000}`)

const repeated = (text: string, times: number) => text.repeat(times)

/** Makes a string of ten million characters and more, without a filter that counts them. */
const doubled = (times: number) =>
  `{% capture a %}xxxxxxxxxx{% endcapture %}{% for i in (1..${times}) %}{% capture a %}{{ a }}{{ a }}{% endcapture %}{% endfor %}`

test.each([
  ['a range', '{% for i in (1..1000000000) %}{{ i }}{% endfor %}', /more data than a message may/],
  ['a range in a variable', '{% assign a = (1..1000000000) %}{{ a | size }}', /more data than a message may/],
  ['many ranges', repeated('{% for i in (1..100000) %}{% endfor %}', 100), /more data|more than 500 ms/],
  [
    'nested loops',
    `${repeated('{% for i in (1..1000) %}', 6)}${repeated('{% endfor %}', 6)}`,
    /more data|more than 500 ms/,
  ],
  ['loops over values', `${repeated('{% for i in list %}', 4)}${repeated('{% endfor %}', 4)}`, /more than 500 ms/],
  [
    'one filter after the other',
    `{{ list | join: ",${repeated(' | append: "x" | upcase', 400)} }}`.replace('",', '","'),
    /more data/,
  ],
  [
    'an output of 100 MB',
    `{% for i in (1..1000) %}${repeated('x', 10_000)}{% endfor %}`,
    /longer than 524288 characters/,
  ],
  ['a string of 5 GB', `${doubled(29)}{{ a }}`, /too long|takes more than|longer than/],
  ['padding', '{{ "now" | date: "%999999999d" }}', /more data|longer than/],
  ['a list of 100 MB', '{% for i in (1..200) %}{{ list }}{% endfor %}', /longer than 524288 characters/],
])('a hostile template fails for its person only: %s', async (_case, hostile, reason) => {
  expect(await reasonAmongOthers(hostile)).toMatch(reason)
})

test('a hostile template fails for its person only: sorting again and again, without a tag between', async () => {
  const sorts = repeated(' | sort_natural | sort', 280)
  expect(await reasonAmongOthers(`{% assign a = list${sorts} %}`)).toMatch(
    /takes longer than 2 s|more than 500 ms|more data/,
  )
})

describe('a template that does not compile', () => {
  async function reasonOf(content: Partial<TemplateContent>): Promise<string> {
    const [rendering] = await renderer.render({ ...empty, ...content }, [{}])
    return rendering?.status === 'failed' ? rendering.reason : 'none'
  }

  const long = repeated('x', 600_000)

  test.each([
    ['HTML that is too long', { html: long }, 'The HTML has more than 524288 characters.'],
    ['text that is too long', { text: long }, 'The text has more than 524288 characters.'],
    ['a subject that is too long', { subject: long, text: '' }, 'The subject has more than 2000 characters.'],
    ['too many tags', { text: repeated('{{ a }}', 10_001) }, 'The text has more than 10000 tags of Liquid.'],
    ['unclosed tags', { text: repeated('{{', 100_000) }, 'The text has more than 10000 tags of Liquid.'],
    [
      '20,000 nested elements',
      { html: repeated('<div>', 20_000) },
      'The HTML nests more than 256 elements: send a text too.',
    ],
  ])('a template does not compile: %s', async (_case, content, reason) => {
    expect(await reasonOf(content)).toBe(reason)
  })

  test('a template does not compile: deeply nested tags of Liquid', async () => {
    const text = `${repeated('{% if a %}', 4_900)}${repeated('{% endif %}', 4_900)}`
    expect(await reasonOf({ text })).toMatch(/nests too deep|none/)
  })

  test('20,000 nested elements with a text of their own are rendered', async () => {
    expect(await reasonOf({ html: repeated('<div>', 20_000), text: 'x' })).toBe('none')
  })

  test('nested values of HTML fail a text that is made for each person', async () => {
    const [rendering] = await renderer.render({ ...empty, html: '<p>{{ a | raw }}</p>' }, [
      { a: repeated('<b>', 20_000) },
    ])
    expect(rendering).toMatchObject({ status: 'failed', reason: expect.stringContaining('nests more than 256') })
  })
})

test('long messages for many people are bounded together', async () => {
  const html = `{% for i in (1..500) %}${repeated('x', 1_000)}{% endfor %}`
  const renderings = await renderer.renderFirst({ ...empty, html, text: 'x' }, Array(100).fill({}))
  expect(renderings.map(({ status }) => status)).toEqual(Array(68).fill('rendered'))
})

test('the next template is rendered after each of these', async () => {
  const [rendering] = await renderer.render({ ...empty, text: '{{ a }}' }, [{ a: 1 }])
  expect(rendering).toMatchObject({ status: 'rendered', rendered: { text: '1' } })
})
