import type { RequestHandler } from 'express'

/** Answers `body`, the same each time. */
export function sendStaticText(contentType: string, body: string): RequestHandler {
  const bytes = Buffer.from(body)
  return (_req, res) => {
    res.setHeader('Content-Type', contentType)
    res.setHeader('Cache-Control', 'no-cache')
    res.send(bytes)
  }
}

/** Answers a page of HTML that may do what `policy`, a Content-Security-Policy, allows. */
export function sendStaticPage(html: string, policy: string): RequestHandler {
  const answer = sendStaticText('text/html; charset=utf-8', html)
  return (req, res, next) => {
    res.setHeader('Content-Security-Policy', policy)
    res.setHeader('Referrer-Policy', 'no-referrer')
    return answer(req, res, next)
  }
}
