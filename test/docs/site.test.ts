import { expect, test } from 'vitest'
import config from '../../docs/.vitepress/config.ts'
import { repositoryUrl, resolveLink } from '../../docs/.vitepress/links.ts'
import { pages } from '../../docs/.vitepress/pages.ts'

/* How the site of the documents is put together. That its links lead somewhere shows when it is built. */

const host = 'https://code.example/owner/postern'

test('a link in a page to another page leads to its address on the site', () => {
  expect(resolveLink('docs/guides/polling.md', '../concepts/webhook-delivery.md#the-schedule', null)).toEqual({
    kind: 'page',
    address: '/concepts/webhook-delivery.md#the-schedule',
  })
})

test('a link in a page to the README leads to the first page', () => {
  expect(resolveLink('docs/quickstart.md', '../README.md#what-it-can-do', null)).toEqual({
    kind: 'page',
    address: '/index.md#what-it-can-do',
  })
})

test('a link in a page to a source file leads to the code host', () => {
  expect(resolveLink('docs/reference/errors.md', '../../contract/errors.ts', host)).toMatchObject({
    path: 'contract/errors.ts',
    url: `${host}/blob/HEAD/contract/errors.ts`,
  })
})

test('a link in a page to a folder leads to its listing on the code host', () => {
  expect(resolveLink('CONTRIBUTING.md', 'test/docs/', host)).toMatchObject({ url: `${host}/tree/HEAD/test/docs` })
})

test('a link in a page to a source file leads nowhere without a code host', () => {
  expect(resolveLink('docs/reference/errors.md', '../../contract/errors.ts', null)).toEqual({
    kind: 'file',
    path: 'contract/errors.ts',
    url: null,
  })
})

test('a link in a page to a file that is missing fails the build', () => {
  expect(() => resolveLink('docs/reference/errors.md', '../../contract/error.ts', null)).toThrow(
    'docs/reference/errors.md links to ../../contract/error.ts, which is not there',
  )
})

test.each([
  ['https://code.example/owner/postern', host],
  [{ type: 'git', url: 'git+https://code.example/owner/postern.git' }, host],
  [undefined, null],
])('the repository %j of package.json is %s in a browser', (repository, url) => {
  expect(repositoryUrl(repository)).toBe(url)
})

test('every page has an address of its own', () => {
  const addresses = Object.values(config.rewrites ?? {})
  expect(addresses).toHaveLength(pages.length)
  expect(new Set(addresses).size).toBe(pages.length)
})
