import { QuoteType, Tokenizer, type TokenizerCallbacks } from 'htmlparser2'

/**
 * A link of an HTML text: the value of `href` in the first such attribute of an `a` or `area` element, or of a
 * shape in VML, of which Outlook makes buttons.
 */
export type HtmlLink = {
  /** Where the value stands, without its quotes. */
  start: number
  end: number
  quoted: boolean
  /** What it means: its character references replaced, no white space at its ends, no line breaks. */
  target: string
}

export type HtmlScan = {
  /** In their order. */
  links: HtmlLink[]
  /** Before the end tag of the body, or else at the very end. */
  bodyEnd: number
}

/**
 * Finds the links of an HTML text and the end of its body, as a browser would: nothing in comments, in
 * scripts and the like, or in tags that are not closed. Conditional comments, `<!--[if mso]>`, hide HTML from
 * all but Outlook; their links are found too. Any text is HTML; this reads it once, and such comments twice.
 *
 * Source: HTML standard §13.2.5 (tokenization), by htmlparser2; RFC 3986 allows no white space in a link,
 * and HTML §2.4.1 strips it. Microsoft, "About conditional comments" (downlevel-hidden).
 */
export function scanHtml(html: string): HtmlScan {
  const links: HtmlLink[] = []
  const bodyEnd = scan(html, links, (start, end) => {
    const condition = conditionOf(html, start, end)
    // A comment within is not looked into: whatever a sender nests, no byte is read a third time.
    if (condition !== null) scan(html.slice(condition, end), links, ignore, condition)
  })
  return { links, bodyEnd: bodyEnd ?? html.length }
}

/** Where the HTML of a conditional comment begins; null: it is any other comment. */
function conditionOf(html: string, start: number, end: number): number | null {
  const text = html.slice(start, Math.min(end, start + maxConditionLength))
  const [condition] = /^\[if [^\]]*\]>/i.exec(text) ?? []
  return condition === undefined ? null : start + condition.length
}

/** Of the condition of a comment, such as `[if gte mso 9]>`. Characters. */
const maxConditionLength = 200

/**
 * Adds the links of an HTML text to `links`, and returns where the end tag of its body stands, if it does.
 *
 * @param onComment Called with the place of each comment's text.
 * @param offset Of `html` in the whole text, for the places of links.
 */
function scan(
  html: string,
  links: HtmlLink[],
  onComment: (start: number, end: number) => void,
  offset = 0,
): number | null {
  let bodyEnd: number | null = null
  /** Whether the tag being read is a link that has no `href` yet. */
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

/** What stands between the name of an attribute and its value. */
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

/** A text as it stands in an attribute between double quotes, or alone where it has nothing special. */
export function escapeAttribute(text: string): string {
  return text.replace(/[&"'<>]/g, (character) => `&#${character.charCodeAt(0)};`)
}
