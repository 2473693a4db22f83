import { escapeAttribute, scanHtml } from './html.ts'

export type TrackingOptions = {
  /** What to put in the place of a link; null: links stay as they are. */
  linkTo: ((link: string) => string) | null
  /** Of an image that tells that the message is looked at; null: none. */
  pixelUrl: string | null
  /** Links that begin like this lead to this service already, and stay. */
  ownUrl: string
}

/** Servers and mail programs cut longer addresses; a token makes them a third longer. Characters. */
export const maxLinkLength = 2_000
/** Nobody writes more; each takes a moment for each recipient, while nothing else is done. */
export const maxLinks = 1_000

/**
 * Has the links of an HTML text lead over this service, the first 1,000, and puts the pixel at the end of its
 * body. What is no link to the web stays as it is, and everything else byte for byte.
 */
export function trackHtml(html: string, { linkTo, pixelUrl, ownUrl }: TrackingOptions): string {
  const { links, bodyEnd } = scanHtml(html)
  const edits = links
    .values()
    .filter(({ target }) => linkTo !== null && isWebLink(target) && !isBelow(target, ownUrl))
    .take(maxLinks)
    .map(({ start, end, quoted, target }) => {
      const url = escapeAttribute(linkTo?.(target) ?? target)
      return { start, end, text: quoted ? url : `"${url}"` }
    })
    .toArray()
  if (pixelUrl !== null) edits.push({ start: bodyEnd, end: bodyEnd, text: pixel(pixelUrl) })
  return applied(html, edits)
}

/** Whether a link leads to the web: only there may this service forward. */
export function isWebLink(link: string): boolean {
  if (link.length > maxLinkLength || !/^https?:\/\//i.test(link)) return false
  const url = URL.parse(link)
  return url !== null && (url.protocol === 'http:' || url.protocol === 'https:')
}

function isBelow(link: string, ownUrl: string): boolean {
  return link.startsWith(`${ownUrl}/u/`) || link.startsWith(`${ownUrl}/t/`)
}

function pixel(url: string): string {
  return `<img src="${escapeAttribute(url)}" width="1" height="1" alt="" style="display:block;width:1px;height:1px;border:0">`
}

type Edit = { start: number; end: number; text: string }

function applied(html: string, edits: readonly Edit[]): string {
  const pieces: string[] = []
  let position = 0
  for (const { start, end, text } of edits.toSorted((one, other) => one.start - other.start)) {
    pieces.push(html.slice(position, start), text)
    position = end
  }
  return pieces.join('') + html.slice(position)
}
