import { compile } from 'html-to-text'
import { Parser } from 'htmlparser2'
import { renderingLimits } from './limits.ts'
import { replaceSegments } from './liquid-source.ts'
import { TemplateFault } from './template-faults.ts'

const headings = ['h1', 'h2', 'h3', 'h4', 'h5', 'h6']

const convert = compile({
  wordwrap: false,
  limits: { maxInputLength: renderingLimits.outputLength, maxDepth: renderingLimits.depth, ellipsis: '…' },
  selectors: [
    { selector: 'a', options: { hideLinkHrefIfSameAsText: true } },
    { selector: 'img', format: 'skip' },
    { selector: 'head', format: 'skip' },
    { selector: 'title', format: 'skip' },
    ...headings.map((selector) => ({ selector, options: { uppercase: false } })),
  ],
})

/** Makes the text of a message of its HTML. Throws TemplateFault for HTML that nests more than 256 elements. */
export function textFromHtml(html: string): string {
  checkDepth(html)
  return tidy(convert(html))
}

/** Removes the empty lines that tags of Liquid leave in a text made from HTML. */
export function tidy(text: string): string {
  return text
    .replace(/[ \t]+\n/g, '\n')
    .replace(/\n{3,}/g, '\n\n')
    .trim()
}

/** The conversion and the parser of MJML call themselves for each level. */
function checkDepth(html: string): void {
  let depth = 0
  const parser = new Parser({
    onopentagname() {
      if (++depth > renderingLimits.depth) {
        throw new TemplateFault(`The HTML nests more than ${renderingLimits.depth} elements: send a text too.`)
      }
    },
    onclosetag() {
      depth--
    },
  })
  parser.write(html)
  parser.end()
}

/** Characters for private use: no template should have them. */
const [opening, closing] = ['\ue000', '\ue001']
const mark = /\ue000(\d+)\ue001/g

/**
 * The filters and tags of Liquid that make HTML of a value, or text that differs from the value. With one of them, the
 * text has to be made of the rendered HTML.
 */
const makesHtml =
  /\|\s*(raw|escape|escape_once|xml_escape|newline_to_br)\b|^\{%-?\s*(raw|capture|liquid|echo|tablerow|comment)\b/

/**
 * Makes the source of the text of that of the HTML, so that HTML need not be read for each person. Returns null where
 * the text would not be the same as that of the rendered HTML. Expects a source that Liquid has parsed.
 */
export function textSourceFromHtml(source: string): string | null {
  if (source.includes(opening) || source.includes(closing)) return null
  const tags: string[] = []
  const html = replaceSegments(source, (tag, index) => {
    tags.push(tag)
    return `${opening}${index}${closing}`
  })
  if (tags.some((tag) => makesHtml.test(tag))) return null
  // Its numbers are written now, and not when the loop is known.
  if (/<ol\b/i.test(html)) return null
  const text = textFromHtml(html)
  const kept = Array.from(text.matchAll(mark), ([, index]) => Number(index))
  const isKept = new Set(kept)
  const isInOrder = kept.every((index, position) => position === 0 || index > (kept[position - 1] ?? 0))
  const isComplete = tags.every((tag, index) => tag.startsWith('{{') || isKept.has(index))
  if (!isInOrder || !isComplete || /\{[{%]/.test(text)) return null
  return text.replace(mark, (_mark, index) => tags[Number(index)] ?? '')
}
