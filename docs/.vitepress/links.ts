import { existsSync, statSync } from 'node:fs'
import { join, posix } from 'node:path'
import type { MarkdownRenderer } from 'vitepress'
import { addressOf, pages, root } from './pages.ts'

/*
 * Links in the pages are relative paths of files, as a code host wants them. On the site, those to another page lead
 * to its address. Those to any other file lead to the code host; without one they become the text alone, with the
 * path as its tooltip.
 */

type Target = { kind: 'page'; address: string } | { kind: 'file'; path: string; url: string | null }

/**
 * Where a relative link leads.
 *
 * @param page the page it is on, from the top of the checkout
 * @param repository the address of the repository on a code host, such as `https://github.com/owner/name`, or null
 * @throws when there is no such file
 */
export function resolveLink(page: string, href: string, repository: string | null): Target {
  const [path = '', anchor] = decodeURI(href).split('#')
  const hash = anchor === undefined ? '' : `#${anchor}`
  const file = posix.join(posix.dirname(page), path).replace(/\/$/, '')
  if (pages.includes(file)) return { kind: 'page', address: `/${addressOf(file)}${hash}` }
  const onDisk = join(root, file)
  if (!existsSync(onDisk)) throw new Error(`${page} links to ${href}, which is not there`)
  if (file.startsWith('docs/') && file.endsWith('.md'))
    throw new Error(`${page} links to ${href}, which docs/.vitepress/pages.ts does not list`)
  const view = statSync(onDisk).isDirectory() ? 'tree' : 'blob'
  return { kind: 'file', path: file, url: repository === null ? null : `${repository}/${view}/HEAD/${file}${hash}` }
}

/** The address of the repository for a browser, from the `repository` of package.json; null without one. */
export function repositoryUrl(repository: unknown): string | null {
  const url = typeof repository === 'string' ? repository : Object(repository).url
  if (typeof url !== 'string') return null
  return url.replace(/^git\+/, '').replace(/\.git$/, '')
}

/** Makes the links of every page those of the site. */
export function rewriteLinks(md: MarkdownRenderer, repository: string | null): void {
  md.core.ruler.push('postern_links', ({ tokens, env }) => {
    const page = pageOf(env)
    for (const { children } of tokens) {
      const open: { tag: string }[] = []
      for (const token of children ?? []) {
        if (token.type === 'link_close') token.tag = open.pop()?.tag ?? token.tag
        if (token.type !== 'link_open') continue
        open.push(token)
        const href = token.attrGet('href')
        if (typeof href !== 'string' || /^(?:[a-z]+:|#)/i.test(href)) continue
        const target = resolveLink(page, href, repository)
        if (target.kind === 'page') token.attrSet('href', target.address)
        else if (target.url !== null) token.attrSet('href', target.url)
        else {
          token.tag = 'span'
          token.attrs = [['title', target.path]]
        }
      }
    }
  })
}

/** The page being rendered, from the top of the checkout. */
function pageOf(env: { realPath?: string; path: string }): string {
  return posix.relative(root, env.realPath ?? env.path)
}
