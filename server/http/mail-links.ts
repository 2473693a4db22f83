import { createHash } from 'node:crypto'
import type { Express, Request, RequestHandler, Response } from 'express'
import type { Asking, MailLinks } from '../tracking/tracking.ts'
import { clientAddressOf } from './client-address.ts'
import { refuseOtherMethods } from './methods.ts'

/** One transparent pixel. */
const pixel = Buffer.from('R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7', 'base64')

const style = `body { margin: 15vh auto; max-width: 26rem; padding: 0 1.5rem; font: 1rem/1.5 sans-serif; color: #222; }
h1 { font-size: 1.4rem; }
button { font: inherit; padding: 0.6rem 1.2rem; border: 0; border-radius: 0.3rem; background: #222; color: #fff; }`

const contentSecurityPolicy = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'`,
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ')

const pages = {
  ask: page(
    'Unsubscribe',
    '<p>You will get no more of these emails.</p>\n    <form method="post"><button>Unsubscribe</button></form>',
  ),
  done: page('You are unsubscribed', '<p>You will get no more of these emails.</p>'),
  unknown: page(
    'This link does not work',
    '<p>It is not whole, or what it belongs to is gone. Open it from the email again, or ask whoever sent it.</p>',
  ),
} as const

/**
 * Serves the links in emails, without a key: pixels under `/t/o`, redirects under `/t/c`, and pages to unsubscribe
 * under `/u`. Only POST unsubscribes, and redirects lead only to signed targets.
 */
export function serveMailLinks(app: Express, links: MailLinks): void {
  app.get('/t/o/:token', (req, res) => {
    links.opened(req.params.token, askingOf(req))
    // The same for an invalid token, because a broken image would be visible.
    res.type('gif').send(pixel)
  })

  app.get('/t/c/:token', (req, res) => {
    const link = links.clicked(req.params.token, askingOf(req))
    if (link === null) {
      sendPage(res, 404, pages.unknown)
      return
    }
    res.setHeader('Referrer-Policy', 'no-referrer')
    res.status(302).setHeader('Location', new URL(link).href).end()
  })

  app.get('/u/:token', (req, res) => {
    if (links.isUnsubscribe(req.params.token)) sendPage(res, 200, pages.ask)
    else sendPage(res, 404, pages.unknown)
  })

  // The body is ignored: a mailbox provider sends `List-Unsubscribe=One-Click`, the page an empty form.
  // No redirect: RFC 8058 §3.1 allows none.
  const unsubscribe: RequestHandler<{ token: string }> = async (req, res) => {
    if (await links.unsubscribe(req.params.token)) sendPage(res, 200, pages.done)
    else sendPage(res, 404, pages.unknown)
  }
  app.post('/u/:token', unsubscribe)

  for (const path of ['/t/o/:token', '/t/c/:token']) refuseOtherMethods(app, path, ['GET'])
  refuseOtherMethods(app, '/u/:token', ['GET', 'POST'])
}

function askingOf(req: Request): Asking {
  if (req.method !== 'GET') return null
  const purposes = [req.get('sec-purpose'), req.get('purpose'), req.get('x-purpose'), req.get('x-moz')]
  return {
    userAgent: req.get('user-agent') ?? null,
    ipAddress: clientAddressOf(req.ip),
    prefetch: purposes.some((purpose) => /prefetch|preview|prerender/i.test(purpose ?? '')),
  }
}

function sendPage(res: Response, status: number, html: string): void {
  res.setHeader('Content-Security-Policy', contentSecurityPolicy)
  res.setHeader('Referrer-Policy', 'no-referrer')
  res.setHeader('X-Robots-Tag', 'noindex')
  res.status(status).type('html').send(html)
}

function page(title: string, content: string): string {
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>${title}</title>
    <style>${style}</style>
  </head>
  <body>
    <h1>${title}</h1>
    ${content}
  </body>
</html>
`
}
