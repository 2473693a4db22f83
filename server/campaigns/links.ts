import { scanHtml } from '../message/html.ts'
import { isWebLink, maxLinkLength } from '../message/links.ts'
import { liquidIn } from '../statistics/campaign-links.ts'

/** Links of this service in an email, which are not tracked: `unsubscribeUrl` and the like, and nothing else. */
const ownLink = /^\{\{-?\s*(?:unsubscribeUrl|preferencesUrl|webUrl)\b[^{}]*\}\}$/

/** Two characters for private use, which mark the number of a tag of Liquid. They have no meaning in HTML. */
const [before, behind] = ['\u{E000}', '\u{E001}']
const placeholder = new RegExp(`${before}(\\d+)${behind}`, 'gu')

/**
 * Returns the web links in the HTML of a campaign as they were written, in order, each once. Liquid may have quotes and
 * angle brackets, so it is taken out before the HTML is read, and put back into the links.
 */
export function linksIn(html: string): string[] {
  const tags: string[] = []
  const pieces: string[] = []
  let at = 0
  for (const { start, end } of liquidIn(html)) {
    pieces.push(html.slice(at, start), `${before}${tags.length}${behind}`)
    tags.push(html.slice(start, end))
    at = end
  }
  const { links } = scanHtml([...pieces, html.slice(at)].join(''))
  const written = links
    .filter(({ target }) => target.startsWith(before) || isWebLink(target))
    .map(({ target }) => target.replaceAll(placeholder, (mark, number) => tags[Number(number)] ?? mark))
  return [...new Set(written)].filter((link) => link.length <= maxLinkLength && !ownLink.test(link))
}
