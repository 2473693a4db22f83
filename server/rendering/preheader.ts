import { Tokenizer } from 'htmlparser2'
import { ignored } from './html-tokens.ts'
import { replaceSegments } from './liquid-source.ts'

/**
 * Returns where the preheader goes in the source of HTML: behind the start tag of the body. Without one, behind the
 * head or the document type, and else at the start. Expects a source that Liquid has parsed.
 */
export function placeOfPreheader(source: string): number {
  // As long as the tag of Liquid, so that places stay the same.
  const html = replaceSegments(source, (tag) => 'x'.repeat(tag.length))
  let place = 0
  let body = -1
  let name = ''
  const tokenizer = new Tokenizer(
    {},
    {
      ...ignored,
      ondeclaration: (_start, end) => {
        if (body < 0) place = Math.max(place, end + 1)
      },
      onopentagname: (start, end) => {
        name = html.slice(start, end).toLowerCase()
      },
      onopentagend: (end) => {
        if (name === 'body' && body < 0) body = end + 1
        else if (name === 'html' && body < 0) place = Math.max(place, end + 1)
      },
      onclosetag: (start, end) => {
        if (body < 0 && html.slice(start, end).toLowerCase() === 'head') place = html.indexOf('>', end) + 1
      },
    },
  )
  tokenizer.write(html)
  tokenizer.end()
  return body >= 0 ? body : place
}

/**
 * Returns the block that holds the preheader: mail programs show it beside the subject, and hide it in the message.
 *
 * @param html The preheader, escaped.
 */
export function preheaderBlock(html: string): string {
  return `<div style="display:none;font-size:1px;line-height:1px;max-height:0;max-width:0;opacity:0;overflow:hidden;mso-hide:all">${html}</div>`
}
