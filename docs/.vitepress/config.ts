import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { DefaultTheme, UserConfig } from 'vitepress'
import { keepBraces } from './braces.ts'
import { repositoryUrl, rewriteLinks } from './links.ts'
import { addressOf, anchorOf, pages, root, sections, titleOf } from './pages.ts'

/*
 * The documents as a site: `npm run docs` serves it, `npm run docs:build` builds it and fails for a dead link. It
 * shows the files of the checkout as they are. The pages are plain Markdown, so that they read as well on a code host.
 */

const { repository } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))

// The source of the site is the whole checkout, for the README and CONTRIBUTING.md are pages of it.
const noPages = globSync('**/*.md', { cwd: root, exclude: (name) => name === 'node_modules' })
  .map((file) => file.replaceAll('\\', '/'))
  .filter((file) => !pages.includes(file))

const config: UserConfig<DefaultTheme.Config> = {
  lang: 'en',
  title: 'Postern',
  description: 'The documents of Postern, a self-hosted email delivery service',
  srcDir: '..',
  srcExclude: noPages,
  rewrites: Object.fromEntries(pages.map((page) => [page, addressOf(page)])),
  // Keeps inline scripts few, for a server that sends a content security policy.
  metaChunk: true,
  markdown: {
    anchor: { slugify: anchorOf },
    languageAlias: { receiver: 'js' },
    config: (md) => {
      rewriteLinks(md, repositoryUrl(repository))
      keepBraces(md)
    },
  },
  themeConfig: {
    outline: [2, 3],
    search: { provider: 'local' },
    sidebar: sections.map((section) => ({
      text: section.title,
      items: Object.keys(section.pages).map((page) => ({
        text: titleOf(page),
        link: `/${addressOf(page).replace(/(^|\/)index\.md$|\.md$/, '$1')}`,
      })),
    })),
  },
  vite: {
    // The data of a running service, and what tests leave.
    server: { watch: { ignored: ['**/.postern/**', '**/coverage/**', '**/test/clients/generated/**'] } },
    // Vite otherwise looks through every HTML file of the checkout.
    optimizeDeps: { entries: [] },
  },
}

// biome-ignore lint/style/noDefaultExport: VitePress reads it so
export default config
