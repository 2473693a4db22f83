import type { Express, Response } from 'express'
import type { WebPage, WebPages } from '../campaigns/web-pages.ts'
import { closing } from './large-responses.ts'
import { sendMailPage } from './mail-links.ts'
import { busyPage, goneMessagePage, ownLinkPage, textMessagePage, unknownPage } from './mail-pages.ts'
import { refuseOtherMethods } from './methods.ts'

/**
 * The Content Security Policy for the HTML of a message: it can show itself and images. In a sandbox it has an origin
 * of its own, without scripts and forms; its links open. So it can neither act as this service nor read its data.
 *
 * Source: Content Security Policy Level 3, `sandbox`; HTML standard, sandboxing.
 */
const messagePolicy = [
  'sandbox allow-popups allow-popups-to-escape-sandbox',
  "default-src 'none'",
  'img-src http: https: data:',
  'font-src http: https: data:',
  "style-src 'unsafe-inline'",
  "form-action 'none'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ')

/** A page of at most as many bytes is left to the connection: larger ones count as being read until they are. */
const smallBytes = 16 * 1024

/** `readWithinMs`: milliseconds in which a client must read a larger page, or is cut off. Default: 20 s. */
export type WebPageLimits = { readWithinMs?: number }

/**
 * Serves the messages of campaigns, without a key: `/w/:token` as one recipient got it, `/a/:token` for everybody, and
 * pages that stand for the personal links in the latter.
 */
export function serveWebPages(app: Express, pages: WebPages, { readWithinMs = 20_000 }: WebPageLimits = {}): void {
  async function send(res: Response, page: WebPage): Promise<void> {
    if (sendWebPage(res, page) > smallBytes) await closing(res, readWithinMs)
  }

  app.get('/w/:token', (req, res) => pages.ofEmail(req.params.token, (page) => send(res, page)))
  app.get('/a/:token', (req, res) =>
    pages.ofCampaign(req.params.token, (page) => {
      // Soon away from caches too, once it is not public any more.
      if (page.status === 'shown') res.setHeader('Cache-Control', 'public, max-age=60')
      return send(res, page)
    }),
  )
  const ofEverybody = ['/a/:token/unsubscribe', '/a/:token/unsubscribe/preferences']
  for (const path of ofEverybody) app.get(path, (_req, res) => sendMailPage(res, 200, ownLinkPage()))
  for (const path of ['/w/:token', '/a/:token', ...ofEverybody]) refuseOtherMethods(app, path, ['GET'])
}

/** Returns the bytes of a message; 0 for a page that says why there is none. */
function sendWebPage(res: Response, page: WebPage): number {
  switch (page.status) {
    case 'unknown':
      sendMailPage(res, 404, unknownPage())
      return 0
    case 'gone':
      sendMailPage(res, 410, goneMessagePage())
      return 0
    case 'busy':
      res.setHeader('Retry-After', '10')
      sendMailPage(res, 503, busyPage())
      return 0
    case 'shown': {
      const { subject, html, text, isIndexed } = page
      const shown =
        html === null ? textMessagePage(subject, text ?? '') : { html, contentSecurityPolicy: messagePolicy }
      sendMailPage(res, 200, shown, { isIndexed })
      return Buffer.byteLength(shown.html)
    }
  }
}
