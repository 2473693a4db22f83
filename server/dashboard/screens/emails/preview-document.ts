import type { InlineImages } from './inline-images.ts'
import { linkTarget } from './link-target.ts'
import { withStylesRenamed } from './preview-html.ts'

/** The document may have styles and images: embedded ones, and remote ones where they are asked for. */
const policyWith = (images: string) => `default-src 'none'; style-src 'unsafe-inline'; img-src ${images}`

/** Characters of all inline images in a preview: a hostile message names one thousands of times. */
const maxInlineLength = 10_000_000

/** An address of an image that may be loaded. */
const remote = /^\s*https:\/\//i
const remoteBackground = '[background^="https://" i]'
const remoteInStyle = /url\(\s*["']?https:\/\//i

/** Elements that would run or load something. The policy and the sandbox stop them too: this keeps the console quiet. */
const active = 'script, link, base, iframe, object, embed, meta[http-equiv], meta[name=referrer i]'

type PreviewOptions = {
  nonce: string
  images: InlineImages
  /** Whether images are loaded from other servers, over TLS. Then it must stand in the frame for that. */
  withRemoteImages: boolean
}

export type PreviewDocument = { html: string; hasRemoteImages: boolean }

/**
 * Returns the HTML of a message as a document for a frame of this page, which inherits its Content-Security-Policy. That
 * policy refuses style attributes, and style elements without the nonce. So the elements get the nonce, and each attribute
 * becomes a rule that wins over all others as an attribute does. Inline images stand in their place, and remote ones are
 * left out unless they are asked for. Links lead to sites and mailboxes alone, in windows that know nothing of this one. `html` has at most
 * `previewLimit` characters.
 */
export function previewDocument(html: string, { nonce, images, withRemoteImages }: PreviewOptions): PreviewDocument {
  // Renamed before it is parsed: the policy holds for the parser too.
  const parsed = new DOMParser().parseFromString(withStylesRenamed(html, nonce), 'text/html')
  for (const element of parsed.querySelectorAll(active)) element.remove()
  for (const element of parsed.querySelectorAll('[referrerpolicy]')) element.removeAttribute('referrerpolicy')
  let left = maxInlineLength
  let hasRemoteImages = parsed.querySelector(remoteBackground) !== null
  for (const image of parsed.querySelectorAll('img')) {
    image.removeAttribute('srcset')
    const source = image.getAttribute('src') ?? ''
    const inline = /^cid:/i.test(source) ? images.get(source.slice(4)) : undefined
    if (inline !== undefined && inline.length <= left) {
      left -= inline.length
      image.setAttribute('src', inline)
    } else if (remote.test(source)) {
      hasRemoteImages = true
      if (!withRemoteImages) image.removeAttribute('src')
    } else if (!source.startsWith('data:')) image.removeAttribute('src')
  }
  for (const link of parsed.querySelectorAll('a, area')) pointOut(link)
  /** The class of each style, since a browser finds a rule by its class without a look at all others. */
  const classes = new Map<string, string>()
  for (const element of parsed.querySelectorAll('[data-style]')) {
    const declarations = serialized(element.getAttribute('data-style') ?? '')
    const name = classes.get(declarations) ?? `postern-style-${classes.size}`
    classes.set(declarations, name)
    element.removeAttribute('data-style')
    element.classList.add(name)
  }
  const rules = [...classes].map(([declarations, name]) => `.${name}:not(#a#a#a) { ${declarations} }`)
  const style = parsed.createElement('style')
  style.setAttribute('nonce', nonce)
  style.textContent = rules.join('\n')
  const meta = parsed.createElement('meta')
  meta.setAttribute('http-equiv', 'Content-Security-Policy')
  meta.setAttribute('content', policyWith(withRemoteImages ? 'https: data:' : 'data:'))
  parsed.head.prepend(meta)
  parsed.head.append(style)
  hasRemoteImages ||= [...parsed.querySelectorAll('style')].some(({ textContent }) => remoteInStyle.test(textContent))
  return { html: `<!doctype html>${parsed.documentElement.outerHTML}`, hasRemoteImages }
}

/** Has a link open in a window of its own, with the address that it leads to on hover; or takes it away. */
function pointOut(link: Element): void {
  const target = linkTarget(link.getAttribute('href'))
  for (const { name } of [...link.attributes])
    if (/href$|^(?:target|rel|ping|download)$/i.test(name)) link.removeAttribute(name)
  if (target === null) return
  link.setAttribute('href', target)
  link.setAttribute('title', target)
  link.setAttribute('target', '_blank')
  link.setAttribute('rel', 'noopener noreferrer nofollow')
}

/** Returns declarations as the browser reads them, so that none can end the rule that it comes into. */
function serialized(declarations: string): string {
  const reader = document.createElement('span')
  reader.style.cssText = declarations
  return reader.style.cssText
}
