import { escapeAttribute, scanHtml } from './html.ts'

export type TrackingOptions = {
  /** Returns the replacement of a link; null: links stay as they are. */
  linkTo: ((link: string) => string) | null
  /** The URL of the image that tracks opens; null: none. */
  pixelUrl: string | null
  /** The public URL of this service. Its own links are not replaced. */
  ownUrl: string
}

/** Maximum characters of a tracked link. Servers and mail programs cut long URLs, and a token is a third longer. */
export const maxLinkLength = 2_000
/** Maximum tracked links of an email. Each costs time for every recipient and blocks the event loop. */
export const maxLinks = 1_000

/**
 * Replaces the first 1,000 web links of HTML by tracked links, and adds the pixel at the end of its body. Everything
 * else stays the same, byte for byte.
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

/** Returns whether a link is an http or https URL. This service redirects to no others. */
export function isWebLink(link: string): boolean {
  if (link.length > maxLinkLength || !/^https?:\/\//i.test(link)) return false
  const url = URL.parse(link)
  return url !== null && (url.protocol === 'http:' || url.protocol === 'https:')
}

/** Where this service serves links in emails. */
const ownPaths = ['/u/', '/t/', '/w/', '/a/']

function isBelow(link: string, ownUrl: string): boolean {
  return ownPaths.some((path) => link.startsWith(`${ownUrl}${path}`))
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
