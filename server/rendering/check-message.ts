import { Parser } from 'htmlparser2'
import { createLineCounter } from './lines.ts'

/** The kind of a note about a rendered message. */
export type MessageCheckCode = 'no_text' | 'broken_html' | 'image_without_size' | 'too_large' | 'suspicious_link'

/** `line`: in the HTML, from 1; null: the whole. */
export type FoundCheck = { code: MessageCheckCode; line: number | null; message: string | null }

/** Gmail shows no more of a message. Bytes. */
const maxShownBytes = 102 * 1_024
/** Most notes of one code: more would only repeat. */
const maxOfCode = 10

/** Elements without an end tag, and those that may be left open: HTML standard §13.1.2. */
const unclosed = new Set(
  'area base br col embed hr img input link meta source track wbr html head body p li dt dd option tr td th thead tbody tfoot colgroup'.split(
    ' ',
  ),
)

/** Notes what mail programs and spam filters dislike about a rendered message. */
export function checkMessage({ html, text }: { html: string | null; text: string | null }): FoundCheck[] {
  const checks: FoundCheck[] = []
  if (text === null || text === '') checks.push({ code: 'no_text', line: null, message: null })
  if (html === null) return checks
  if (Buffer.byteLength(html) > maxShownBytes) checks.push({ code: 'too_large', line: null, message: null })

  const counts = new Map<MessageCheckCode, number>()
  const lineAt = createLineCounter(html)
  const note = (code: MessageCheckCode, index: number, message: string) => {
    const count = (counts.get(code) ?? 0) + 1
    counts.set(code, count)
    if (count <= maxOfCode) checks.push({ code, line: lineAt(index), message })
  }

  const open: { name: string; at: number }[] = []
  let link: { href: string; text: string; at: number } | null = null
  const parser = new Parser(
    {
      onopentag(name, attributes) {
        const at = parser.startIndex
        if (!unclosed.has(name)) open.push({ name, at })
        if (name === 'img' && (isBlank(attributes.width) || isBlank(attributes.height))) {
          note('image_without_size', at, `An image has no ${isBlank(attributes.width) ? 'width' : 'height'}.`)
        }
        if (name === 'a' && attributes.href !== undefined) link = { href: attributes.href, text: '', at }
      },
      ontext(data) {
        if (link !== null && link.text.length < maxLinkText) link.text += data
      },
      onclosetag(name, isImplied) {
        if (unclosed.has(name)) return
        // The parser closes what a later end tag leaves open, and what is open at the end.
        const opened = open.pop()
        if (isImplied && opened !== undefined) note('broken_html', opened.at, `<${opened.name}> is not closed.`)
        if (name !== 'a' || link === null) return
        const fault = faultOfLink(link.href, link.text)
        if (fault !== null) note('suspicious_link', link.at, fault)
        link = null
      },
    },
    { decodeEntities: true },
  )
  parser.write(html)
  parser.end()
  return checks
}

function isBlank(value: string | undefined): boolean {
  return value === undefined || value.trim() === ''
}

/** Characters of a text that may be a link itself. */
const maxLinkText = 300

/** Returns why a link looks like one of a fraud, or leads nowhere. Null: it is well. */
function faultOfLink(href: string, text: string): string | null {
  const target = href.trim()
  if (target === '' || target === '#') return 'A link leads nowhere: give it an address, or its Liquid a value.'
  const url = URL.parse(target)
  if (url === null) return `"${shown(target)}" is no link: it needs its https:// too.`
  if (url.protocol === 'mailto:' || url.protocol === 'tel:' || url.protocol === 'sms:') return null
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    return `Mail programs do not open "${shown(url.protocol)}".`
  if (/^(\d{1,3}\.){3}\d{1,3}$|^\[/.test(url.hostname)) return `"${shown(target)}" has a number instead of a name.`
  const told = hostIn(text.trim())
  if (told === null || told === url.hostname || url.hostname.endsWith(`.${told}`)) return null
  return `The text says ${shown(told)}, the link leads to ${shown(url.hostname)}.`
}

/** The host of a text that is a link itself. Null: it is none. */
function hostIn(text: string): string | null {
  if (text.length > maxLinkText || !/^(https?:\/\/|www\.)\S+$/i.test(text)) return null
  const host = URL.parse(/^https?:/i.test(text) ? text : `https://${text}`)?.hostname ?? null
  return host?.replace(/^www\./, '') ?? null
}

function shown(text: string): string {
  return text.length <= 80 ? text : `${text.slice(0, 79)}…`
}
