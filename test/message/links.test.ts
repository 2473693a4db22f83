import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { scanHtml } from '../../server/message/html.ts'
import { isWebLink, trackHtml } from '../../server/message/links.ts'
import { composer, parsed, partsOf, publicUrl, tokens } from '../support/worlds/message.ts'

const ownUrl = publicUrl
const marked = (html: string) => trackHtml(html, { linkTo: (link) => `[${link}]`, pixelUrl: null, ownUrl })

describe('a link', () => {
  test.each([
    ['between quotes', '<a href="https://x.example/">', '<a href="[https://x.example/]">'],
    ['between single quotes', "<a href='https://x.example/'>", "<a href='[https://x.example/]'>"],
    ['without quotes', '<a href=https://x.example/ >', '<a href="[https://x.example/]" >'],
    [
      'among other attributes',
      '<a id=1 href = "http://x.example" id="2">',
      '<a id=1 href = "[http://x.example]" id="2">',
    ],
    ['in capitals, over lines', '<A\nHREF\n=\n"HTTPS://x.example">', '<A\nHREF\n=\n"[HTTPS://x.example]">'],
    ['of an image map', '<area href="https://x.example">', '<area href="[https://x.example]">'],
    ['with white space around', '<a href=" https://x.example\n">', '<a href="[https://x.example]">'],
    ['broken over lines', '<a href="https://x.\nexample/a">', '<a href="[https://x.example/a]">'],
    [
      'given twice, of which the first counts',
      '<a href="https://1.example" href="https://2.example">',
      '<a href="[https://1.example]" href="https://2.example">',
    ],
    ['after what looks like a tag', '1 < 2 <a href="https://x.example">', '1 < 2 <a href="[https://x.example]">'],
  ])('%s is rewritten', (_, html, expected) => {
    expect(marked(html)).toBe(expected)
  })

  test.each([
    ['?a=1&amp;b=2', '?a=1&b=2'],
    ['?a=1&b=2', '?a=1&b=2'],
    ['?a=1&copy=2', '?a=1&copy=2'],
    ['?a=1&#38;b=2', '?a=1&b=2'],
    ['?q=&quot;&#x65E5;', '?q="日'],
  ])('a link is what its character references mean: %s', (given, meant) => {
    const { links } = scanHtml(`<a href="https://x.example/${given}">`)

    expect(links.map(({ target }) => target)).toEqual([`https://x.example/${meant}`])
  })

  test('a link is rewritten if it is among the first 1,000', () => {
    const html = '<a href="https://x.example">'.repeat(1_001)

    expect(marked(html).match(/"\[/g)).toHaveLength(1_000)
    expect(marked(html).endsWith('"[https://x.example]"><a href="https://x.example">')).toBe(true)
  })

  test('a link that begins with a character reference is found', () => {
    expect(marked('<a href="&#104;ttps://x.example">')).toBe('<a href="[https://x.example]">')
  })

  test.each([
    ['a mail address', '<a href="mailto:ann@example.org">'],
    ['a telephone number', '<a href="tel:+49301234">'],
    ['a place in the text', '<a href="#top">'],
    ['a path', '<a href="/x">'],
    ['a host alone', '<a href="//x.example">'],
    ['a script', '<a href="javascript:alert(1)">'],
    ['no value', '<a href>'],
    ['nothing', '<a href="">'],
    ['an address that is none', '<a href="https://">'],
    ['a placeholder', '<a href="{{url}}">'],
    ['an unsubscribe link of this service', `<a href="${publicUrl}/u/token">`],
    ['an address longer than servers take', `<a href="https://x.example/${'x'.repeat(2_000)}">`],
  ])('a link to %s stays', (_, html) => {
    expect(marked(html)).toBe(html)
  })

  test.each([
    '<!-- <a href="https://x.example"> -->',
    '<!-- [if mso]><a href="https://x.example"><![endif]-->',
    '<!--[if mso]><!-- <a href="https://x.example"> --><![endif]-->',
    '<!--[if mso]><style><a href="https://x.example"></style><![endif]-->',
    `<!--[if ${'('.repeat(300)}mso]><a href="https://x.example"><![endif]-->`,
    '<script>x = \'<a href="https://x.example">\'</script>',
    '<style>/* <a href="https://x.example"> */</style>',
    '<title><a href="https://x.example"></title>',
    '<textarea><a href="https://x.example"></textarea>',
    '<link href="https://x.example">',
    '<img src="https://x.example">',
    '<p data-href="https://x.example">https://x.example</p>',
    '<a title=\'href="https://x.example"\'>',
    '<a data-href="https://x.example">',
    '<base href="https://x.example">',
    '<a href="https://x.example',
    '<abbr href="https://x.example">',
  ])('a link is none in %s', (html) => {
    expect(marked(html)).toBe(html)
  })

  test.each([
    ['hidden from others', '<!--[if mso]><a href="X"><![endif]-->'],
    ['hidden from others, in capitals', '<!--[IF (gte mso 9)|(IE)]><A HREF=X><![ENDIF]-->'],
    ['a button in VML', '<!--[if mso]><v:roundrect xmlns:v="urn:v" href="X" arcsize="9%">Go</v:roundrect><![endif]-->'],
    ['VML that stands in the open', '<v:rect href="X">'],
    ['shown to others', '<!--[if !mso]><!--><a href="X"><!--<![endif]-->'],
    ['shown to others, in the form that is no comment', '<![if !mso]><a href="X"><![endif]>'],
    ['a condition within', '<!--[if mso]><![if gte mso 15]><a href="X"><![endif]><![endif]-->'],
    ['for Outlook and for others', '<!--[if mso]><a href="X">1</a><![endif]--><!--[if !mso]> --><a href="X">2</a>'],
    ['a comment that does not end', '<!--[if mso]><a href="X">'],
  ])('a link in a conditional comment is rewritten: %s', (_, html) => {
    const link = 'https://x.example/?a=1'
    const expected = html.replaceAll('=X', '="X"').replaceAll('"X"', `"[${link}]"`)

    expect(marked(html.replaceAll('X', link))).toBe(expected)
  })

  test('a link in conditional comments is rewritten where it stands, among others, up to the same limit', () => {
    const one = '<p>ü</p><!--[if mso]>ü<a href="https://x.example"><![endif]--><a href=\'https://y.example\'>'
    const tracked = marked(one.repeat(501))

    expect(
      tracked.startsWith(
        one
          .replace('https://x.example', '[https://x.example]')
          .replace('https://y', '[https://y')
          .replace("y.example'", "y.example]'"),
      ),
    ).toBe(true)
    expect(tracked.match(/\[https/g)).toHaveLength(1_000)
    expect(tracked.endsWith(one)).toBe(true)
  })

  test('a link in a conditional comment does not end it, whatever it becomes', () => {
    const html = '<!--[if mso]><a href=https://x.example><![endif]--><p>'
    const tracked = trackHtml(html, { linkTo: () => 'https://x.example/u/--', pixelUrl: null, ownUrl })

    expect(tracked.indexOf('-->')).toBe(tracked.lastIndexOf('-->'))
  })

  test('a link goes where the sender wants only if that is the web', () => {
    expect(['http://x.example', 'HTTPS://x.example/?a=b#c'].every(isWebLink)).toBe(true)
    expect(
      ['ftp://x.example', 'javascript:alert(1)', 'https:x.example', ' https://x.example', 'http://'].some(isWebLink),
    ).toBe(false)
  })
})

const pieces = fc.constantFrom(
  ...[
    '<a href="',
    "<a href='",
    '<a href=',
    'https://x.example/',
    '&amp;',
    '&#',
    ';',
    '"',
    "'",
    '>',
    '<',
    '/',
    ' ',
    '=',
  ],
  ...[
    '<!--',
    '-->',
    '<!--[if mso]>',
    '<![endif]-->',
    '<v:rect href="',
    '<!',
    ']]>',
    '<![CDATA[',
    '<script>',
    '</script>',
    '</body>',
    '<body>',
    'href',
    '\n',
    'ü',
    '\u0000',
    '<?',
  ],
)
const texts = fc.array(pieces, { maxLength: 40 }).map((parts) => parts.join(''))

test('an HTML text keeps everything but its links, whatever it is', () => {
  fc.assert(
    fc.property(texts, (html) => {
      const { links, bodyEnd } = scanHtml(html)
      let rest = ''
      let position = 0
      for (const { start, end } of links) {
        expect(start).toBeGreaterThanOrEqual(position)
        expect(end).toBeGreaterThanOrEqual(start)
        rest += html.slice(position, start)
        position = end
      }
      rest += html.slice(position)
      expect(trackHtml(html, { linkTo: null, pixelUrl: null, ownUrl })).toBe(html)
      expect(marked(html).length).toBeGreaterThanOrEqual(rest.length)
      expect(bodyEnd).toBeLessThanOrEqual(html.length)
      // Rewritten, it has the same links at the same places in the text.
      const again = scanHtml(trackHtml(html, { linkTo: () => 'https://y.example/', pixelUrl: null, ownUrl })).links
      expect(again.map(({ target }) => target)).toEqual(
        links.map(({ target }) => (isWebLink(target) ? 'https://y.example/' : target)),
      )
    }),
    { numRuns: 1_000 },
  )
})

test.each([
  ['<html><body><p>x</p></body></html>', '<html><body><p>x</p>[]</body></html>'],
  ['<p>x</p></BODY >', '<p>x</p>[]</BODY >'],
  ['<p>x</p>', '<p>x</p>[]'],
  ['<p></body></p><!-- </body> --></body>', '<p></body></p><!-- </body> -->[]</body>'],
])('an HTML text has the pixel at the end of its body: %s', (html, expected) => {
  const tracked = trackHtml(html, { linkTo: null, pixelUrl: 'https://x.example/"&', ownUrl })

  expect(tracked.replace(/<img [^>]*>/, '[]')).toBe(expected)
  expect(tracked).toContain('<img src="https://x.example/&#34;&#38;" width="1" height="1" alt=""')
})

test('an HTML text that is hostile is read once', () => {
  const parts = [
    '<a href="',
    '<!--',
    '<!--[if ',
    '<!--[if mso]>',
    '&amp',
    '<a ',
    '</',
    '<a href=&',
    '=',
    '<a href="&#x',
  ]
  for (const part of parts) {
    const { links } = scanHtml(part.repeat(300_000))
    expect(links.filter(({ target }) => isWebLink(target))).toEqual([])
  }
})

const link = 'https://shop.example/?a=1&b=ü'
const html = `<p><a href="https://shop.example/?a=1&amp;b=ü">Shop</a></p>`

async function copy(email: { trackOpens?: boolean; trackClicks?: boolean }, only: number | null) {
  const parts = partsOf({ email, content: { html, text: link } })
  const mail = await parsed(await composer.compose(parts, only))
  return { mail, emailId: parts.email.id }
}

test('a tracked email has a pixel and links of its recipient’s own, and its text as it was', async () => {
  const { mail, emailId } = await copy({ trackOpens: true, trackClicks: true }, 3)
  const [, click = ''] = /href="https:\/\/post\.example\.com\/t\/c\/([\w-]+)"/.exec(mail.html || '') ?? []
  const [, pixel = ''] = /src="https:\/\/post\.example\.com\/t\/o\/([\w-]+)"/.exec(mail.html || '') ?? []

  expect(tokens.readClick(click)).toEqual({ emailId, position: 3, link })
  expect(tokens.readPixel(pixel)).toEqual({ emailId, position: 3 })
  expect(mail.text?.trim()).toBe(link)
})

test('a tracked email has only what is asked for, and nothing in a copy for all', async () => {
  const opens = await copy({ trackOpens: true }, 0)
  const clicks = await copy({ trackClicks: true }, 0)
  const all = await copy({ trackOpens: true, trackClicks: true }, null)

  expect(opens.mail.html).toContain(html)
  expect(opens.mail.html).toContain('/t/o/')
  expect(clicks.mail.html).toContain('/t/c/')
  expect(clicks.mail.html).not.toContain('/t/o/')
  expect(all.mail.html || '').toBe(html)
})
