import { on } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, request, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import express from 'express'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { serveDashboard } from '../../server/http/dashboard/serve.ts'
import { answerErrors } from '../../server/http/errors.ts'
import { startTestService, type TestService } from '../support/service.ts'

/** Sent with its own path: fetch would resolve `..` before. */
function rawGet(url: string, path: string): Promise<{ status: number; body: string }> {
  const { port } = new URL(url)
  return new Promise((resolve, reject) => {
    request({ host: '127.0.0.1', port, path }, (answer) => {
      let body = ''
      answer.setEncoding('utf8').on('data', (chunk) => {
        body += chunk
      })
      answer.on('end', () => resolve({ status: answer.statusCode ?? 0, body }))
    })
      .on('error', reject)
      .end()
  })
}

describe('the built dashboard', () => {
  let service: TestService
  let page: string

  beforeAll(async () => {
    service = await startTestService({ roles: { worker: false } })
    page = await (await get('/app')).text()
  })
  afterAll(() => service?.stop())

  function get(path: string, headers: Record<string, string> = {}): Promise<Response> {
    return fetch(service.url + path, { redirect: 'manual', headers })
  }

  test('the built dashboard is where the address of the service leads in a browser', async () => {
    const answer = await get('/', { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' })

    expect(answer.status).toBe(302)
    expect(answer.headers.get('location')).toBe('/app')
    expect(answer.headers.get('vary')).toBe('Accept')
  })

  test.each(['/app', '/app/', '/app/sign-in', '/app/acc_x/live/emails/email_y', '/portal/psn_x'])(
    '%s is its page, with a policy and a nonce of this response alone',
    async (path) => {
      const [first, second] = await Promise.all([get(path), get(path)])
      const nonceOf = (answer: Response) =>
        /style-src 'self' 'nonce-([\w-]{22})'/.exec(answer.headers.get('content-security-policy') ?? '')?.[1]

      expect(first.status).toBe(200)
      expect(first.headers.get('content-type')).toBe('text/html; charset=utf-8')
      expect(first.headers.get('cache-control')).toBe('no-store')
      expect(first.headers.get('referrer-policy')).toBe('no-referrer')
      expect(first.headers.get('cross-origin-opener-policy')).toBe('same-origin')
      expect(first.headers.get('content-security-policy')).not.toContain('unsafe')
      expect(nonceOf(first)).not.toBe(nonceOf(second))
      const html = await first.text()
      expect(html).toContain(`nonce="${nonceOf(first)}"`)
      expect(html).not.toContain('__NONCE__')
      expect(html).not.toMatch(/<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)/)
    },
  )

  test.each([
    ['br', 'br'],
    ['gzip', 'gzip'],
    ['identity', null],
  ])(
    'the built dashboard answers its files to Accept-Encoding: %s, for a year, as they are after decoding',
    async (coding, encoding) => {
      const paths = [...page.matchAll(/(?:src|href)="(\/app\/assets\/[^"]+)"/g)].map(([, path = '']) => path)
      expect(paths.length).toBeGreaterThanOrEqual(3)
      for (const path of paths) {
        const [plain, answer] = await Promise.all([
          get(path, { 'accept-encoding': 'identity' }),
          get(path, { 'accept-encoding': coding }),
        ])
        expect(answer.status).toBe(200)
        expect(answer.headers.get('content-encoding')).toBe(encoding)
        expect(answer.headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
        expect(answer.headers.get('vary')).toBe('Accept-Encoding')
        expect(await answer.text()).toBe(await plain.text())
      }
    },
  )

  test('the page of the portal may be shown in frames of the sites that are set, that of the dashboard in none', async () => {
    const origins = ['https://app.example.com', 'https://*.shop.example']
    await using open = await startTestService({ beside: service, roles: { worker: false }, portalOrigins: origins })
    const ancestors = async (url: string) =>
      /frame-ancestors ([^;]*)/.exec((await fetch(url)).headers.get('content-security-policy') ?? '')?.[1]
    expect(await ancestors(`${open.url}/portal/psn_x`)).toBe(origins.join(' '))
    expect(await ancestors(`${service.url}/portal/psn_x/webhooks`)).toBe("'none'")
    for (const path of ['/app', '/app/portal.html', '/app/acc_x/live/webhooks', '/docs']) {
      expect([path, await ancestors(open.url + path)]).toEqual([path, "'none'"])
    }
  })

  test('the built dashboard shows remote images in a page with a policy of its own, in frames of this service alone', async () => {
    const policyOf = async (path: string) => (await get(path)).headers.get('content-security-policy') ?? ''
    const parts = (await policyOf('/app/preview-frame')).split('; ')
    expect(parts[0]).toBe('sandbox allow-scripts allow-popups allow-popups-to-escape-sandbox')
    expect(parts).toEqual(
      expect.arrayContaining([
        "default-src 'none'",
        'img-src https: data:',
        "form-action 'none'",
        "base-uri 'none'",
        "frame-ancestors 'self'",
      ]),
    )
    expect(parts.find((part) => part.startsWith('script-src'))).toMatch(/^script-src 'sha256-[^' ]+'$/)
    for (const path of ['/app', '/portal/psn_x']) expect(await policyOf(path)).toContain("img-src 'self' data:;")
    expect(await policyOf('/portal/psn_x')).toContain("frame-src 'none'")
  })

  test('the built dashboard takes a file of another version for missing, and not for a screen', async () => {
    const answer = await get('/app/assets/index-00000000.js')

    expect(answer.status).toBe(404)
    expect(answer.headers.get('content-type')).toContain('application/json')
  })

  test.each([
    '/app/../../../package.json',
    '/app/..%2f..%2fpackage.json',
    '/app/assets/../../../../package.json',
    '/app/assets/..%2f..%2f..%2findex.html',
    '/app/.vite/manifest.json',
    '/app/sources.sha256',
    '/app/assets/%00',
  ])('%s leads to no file', async (path) => {
    const { body } = await rawGet(service.url, path)

    expect(body).not.toContain('"devDependencies"')
    expect(body).not.toContain('"isEntry"')
    expect(body).toMatch(/^(<!doctype html>|\{"error":)/)
  })

  test.each(['/app', '/app/sign-in', '/app/preview-frame', '/app/assets/x.js', '/portal/psn_x'])(
    '%s has GET and HEAD alone',
    async (path) => {
      const answer = await fetch(service.url + path, { method: 'POST' })

      expect(answer.status).toBe(405)
      expect(answer.headers.get('allow')).toBe('GET, HEAD')
    },
  )

  test('the built dashboard has what was captured: /captured leads there, with GET alone', async () => {
    const answer = await fetch(`${service.url}/captured?next=https://evil.example`, { redirect: 'manual' })
    expect([answer.status, answer.headers.get('location')]).toEqual([302, '/app/captured'])
    expect((await fetch(`${service.url}/captured`, { method: 'POST' })).status).toBe(405)
  })

  test('the built dashboard has a page without a body for HEAD', async () => {
    const answer = await fetch(`${service.url}/app`, { method: 'HEAD' })

    expect(answer.status).toBe(200)
    expect(await answer.text()).toBe('')
  })
})

describe('a folder of the dashboard', () => {
  const folder = mkdtempSync(join(tmpdir(), 'postern-dashboard-'))
  const servers: Server[] = []
  afterAll(() => {
    for (const server of servers) server.close()
    rmSync(folder, { recursive: true, force: true })
  })

  async function serve(dashboardBuilt?: Promise<void>): Promise<string> {
    const app = express().enable('strict routing')
    serveDashboard(app, { portalOrigins: [], capturing: true, dashboardBuilt, folder })
    app.use(answerErrors(pino({ level: 'silent' })))
    const server = createServer(app)
    servers.push(server)
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  }

  test('a folder of the dashboard that is not built says at every path what to do', async () => {
    const url = await serve()
    for (const path of ['/app', '/app/', '/app/sign-in', '/portal/psn_x']) {
      const answer = await fetch(url + path)
      expect(answer.status).toBe(503)
      expect(await answer.text()).toContain('npm ci\nnpm start')
    }
  })

  test('a folder of the dashboard that is being built has requests wait until it is', async () => {
    const built = Promise.withResolvers<void>()
    const url = await serve(built.promise)
    const requests = on(servers.at(-1) as Server, 'request')
    const answers = ['/app', '/portal/psn_x'].map((path) => fetch(url + path))
    for (const _ of answers) await requests.next()
    writeFileSync(join(folder, 'index.html'), '<!doctype html>the dashboard')
    writeFileSync(join(folder, 'portal.html'), '<!doctype html>the portal')
    built.resolve()

    const texts = await Promise.all(answers.map(async (answer) => (await answer).text()))
    expect(texts).toEqual(['<!doctype html>the dashboard', '<!doctype html>the portal'])
  })

  test('a folder of the dashboard serves a file that was not compressed as it is', async () => {
    mkdirSync(join(folder, 'assets'))
    writeFileSync(join(folder, 'assets/x.js'), 'x')
    const answer = await fetch(`${await serve()}/app/assets/x.js`)

    expect(answer.headers.get('content-encoding')).toBeNull()
    expect(await answer.text()).toBe('x')
  })
})
