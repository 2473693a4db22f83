import { useMemo } from 'react'
import { linkTarget } from './link-target.ts'

/** Most links that are listed. */
const maxLinks = 200

type MessageLink = { url: string; text: string }

/** Returns the links of a message that lead to a site or to an address, each once with its first text. */
function linksIn(html: string): MessageLink[] {
  const links = new Map<string, string>()
  for (const link of new DOMParser().parseFromString(html, 'text/html').querySelectorAll('a[href]')) {
    const href = linkTarget(link.getAttribute('href'))
    if (href === null) continue
    if (!links.has(href)) links.set(href, link.textContent.replace(/\s+/g, ' ').trim().slice(0, 200))
    if (links.size === maxLinks) break
  }
  return [...links].map(([url, text]) => ({ url, text }))
}

/** The links of a message, with where they lead. They open in a window that knows nothing of this one. */
export function MessageLinks({ html }: { html: string }) {
  const links = useMemo(() => linksIn(html), [html])
  if (links.length === 0) return <p className="dimmed">The message has no links.</p>
  return (
    <ul className="links">
      {links.map(({ url, text }) => (
        <li key={url}>
          {text !== '' && <span className="second-line">{text}</span>}
          <a className="mono" href={url} target="_blank" rel="noopener noreferrer nofollow">
            {url}
          </a>
        </li>
      ))}
    </ul>
  )
}
