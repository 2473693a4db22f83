import { QuoteType, Tokenizer, type TokenizerCallbacks } from 'htmlparser2'

/**
 * A link in HTML: the value of the first `href` attribute of an `a` or `area` element, or of a VML shape, which
 * Outlook uses for buttons.
 */
export type HtmlLink = {
  /** The offset of the value, without its quotes. */
  start: number
  end: number
  quoted: boolean
  /** The decoded link: character references replaced, and no line breaks or outer white space. */
  target: string
}

export type HtmlScan = {
  /** The links in document order. */
  links: HtmlLink[]
  /** The offset of the end tag of the body, or of the end of the HTML. */
  bodyEnd: number
}

/**
 * Finds the links of HTML and the end of its body, as a browser would: not in comments, scripts and the like, or
 * unclosed tags. It also finds the links in conditional comments, `<!--[if mso]>`, which only Outlook shows. Accepts
 * any text. Reads it once, and conditional comments twice.
 *
 * Source: HTML standard §13.2.5 (tokenization), by htmlparser2; RFC 3986 allows no white space in a link,
 * and HTML §2.4.1 strips it. Microsoft, "About conditional comments" (downlevel-hidden).
 */
export function scanHtml(html: string): HtmlScan {
  const links: HtmlLink[] = []
  const bodyEnd = scan(html, links, (start, end) => {
    const condition = conditionOf(html, start, end)
    // Nested comments are not scanned, so that no byte is read a third time.
    if (condition !== null) scan(html.slice(condition, end), links, ignore, condition)
  })
  return { links, bodyEnd: bodyEnd ?? html.length }
}

/** Returns the offset of the HTML in a conditional comment; null: it is a normal comment. */
function conditionOf(html: string, start: number, end: number): number | null {
  const text = html.slice(start, Math.min(end, start + maxConditionLength))
  const [condition] = /^\[if [^\]]*\]>/i.exec(text) ?? []
  return condition === undefined ? null : start + condition.length
}

/** Maximum length of a condition, such as `[if gte mso 9]>`. Characters. */
const maxConditionLength = 200

/**
 * Adds the links of HTML to `links`. Returns the offset of the end tag of the body; null: there is none.
 *
 * @param onComment Called with the start and end of the text of each comment.
 * @param offset The offset of `html` in the whole text, added to the offsets of links.
 */
function scan(
  html: string,
  links: HtmlLink[],
  onComment: (start: number, end: number) => void,
  offset = 0,
): number | null {
  let bodyEnd: number | null = null
  /** True while reading the tag of a link before its `href`. */
  let inLink = false
  let inHref = false
  let valueStart = 0
  let value = ''

  const callbacks: TokenizerCallbacks = {
    ...ignored,
    onopentagname(start, end) {
      inLink = isLinkElement(html.slice(start, end).toLowerCase())
    },
    onattribname(start, end) {
      inHref = inLink && html.slice(start, end).toLowerCase() === 'href'
      valueStart = end
      value = ''
    },
    onattribdata(start, end) {
      if (inHref) value += html.slice(start, end)
    },
    onattribentity(codepoint) {
      if (inHref) value += String.fromCodePoint(codepoint)
    },
    onattribend(quote, end) {
      if (!inHref) return
      inHref = false
      inLink = false
      if (quote === QuoteType.NoValue) return
      const quoted = quote !== QuoteType.Unquoted
      beforeValue.lastIndex = valueStart
      beforeValue.test(html)
      const target = value.replace(/[\t\n\r]/g, '').trim()
      links.push({ start: offset + beforeValue.lastIndex, end: offset + (quoted ? end - 1 : end), quoted, target })
    },
    oncomment: (start, end, endOffset) => onComment(start, end - endOffset),
    onclosetag(start, end) {
      if (html.slice(start, end).toLowerCase() === 'body') bodyEnd = html.lastIndexOf('<', start)
    },
  }
  const tokenizer = new Tokenizer({}, callbacks)
  tokenizer.write(html)
  tokenizer.end()
  return bodyEnd
}

function isLinkElement(name: string): boolean {
  return name === 'a' || name === 'area' || name.startsWith('v:')
}

/** The text between the name of an attribute and its value. */
const beforeValue = /[ \t\n\f\r]*=[ \t\n\f\r]*["']?/y

const ignore = () => undefined

const ignored: TokenizerCallbacks = {
  onattribdata: ignore,
  onattribend: ignore,
  onattribentity: ignore,
  onattribname: ignore,
  oncdata: ignore,
  onclosetag: ignore,
  oncomment: ignore,
  ondeclaration: ignore,
  onend: ignore,
  onopentagend: ignore,
  onopentagname: ignore,
  onprocessinginstruction: ignore,
  onselfclosingtag: ignore,
  ontext: ignore,
  ontextentity: ignore,
}

/** Escapes text for an attribute value. */
export function escapeAttribute(text: string): string {
  return text.replace(/[&"'<>]/g, (character) => `&#${character.charCodeAt(0)};`)
}
