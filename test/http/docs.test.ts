import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import published from '../../openapi/openapi.json' with { type: 'json' }
import { startTestService, type TestService } from '../support/service.ts'

let service: TestService

beforeAll(async () => {
  service = await startTestService({ roles: { worker: false } })
})
afterAll(() => service?.stop())

function get(path: string): Promise<Response> {
  return fetch(service.url + path, { redirect: 'manual' })
}

describe('the documentation', () => {
  test('the documentation is where the address of the service alone leads', async () => {
    const answer = await get('/')

    expect(answer.status).toBe(302)
    expect(answer.headers.get('location')).toBe('/docs')
  })

  test.each(['/docs', '/docs/'])(
    '%s is a page that may load from this service alone, and may not be framed',
    async (path) => {
      const answer = await get(path)

      expect(answer.status).toBe(200)
      expect(answer.headers.get('content-type')).toBe('text/html; charset=utf-8')
      const policy = answer.headers.get('content-security-policy')?.split('; ')
      expect(policy).toEqual(
        expect.arrayContaining([
          "default-src 'none'",
          "script-src 'self'",
          "style-src 'self'",
          "connect-src 'self'",
          "base-uri 'none'",
          "form-action 'none'",
          "frame-ancestors 'none'",
        ]),
      )
      expect(policy?.join()).not.toContain('unsafe')
    },
  )

  test.each(['/docs', '/docs/'])('%s has nothing inline, and everything it loads is there', async (path) => {
    const html = await (await get(path)).text()

    expect(html).not.toMatch(/<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)/)
    const links = [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, link = '']) => link)
    expect(links.length).toBeGreaterThanOrEqual(5)
    for (const link of links) {
      const { pathname, host } = new URL(link, service.url + path)
      expect(host).toBe(new URL(service.url).host)
      expect((await get(pathname)).status).toBe(200)
    }
  })

  test.each([
    ['/docs/swagger-ui-bundle.js', 'text/javascript; charset=utf-8'],
    ['/docs/swagger-ui.css', 'text/css; charset=utf-8'],
    ['/docs/favicon-32x32.png', 'image/png'],
  ])('%s is kept by browsers, and asked for again by its version', async (path, type) => {
    const first = await get(path)
    // Not with fetch, which would have caches left out of account.
    const again = await service.client.send('GET', path, {
      headers: { 'if-none-match': first.headers.get('etag') ?? '' },
    })

    expect(first.headers.get('content-type')).toBe(type)
    expect(first.headers.get('cache-control')).toBe('public, max-age=3600')
    expect(first.headers.get('x-content-type-options')).toBe('nosniff')
    expect(again.status).toBe(304)
  })
})

test('the OpenAPI document that is served is the published one', async () => {
  const answer = await get('/openapi.json')

  expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8')
  expect(await answer.json()).toEqual(published)
})
