import type { RequestHandler } from 'express'

/** Returns a handler that always answers `body`. */
export function sendStaticText(contentType: string, body: string): RequestHandler {
  const bytes = Buffer.from(body)
  return (_req, res) => {
    res.setHeader('Content-Type', contentType)
    res.setHeader('Cache-Control', 'no-cache')
    res.send(bytes)
  }
}

/** The same for a body that takes time to make: it is made for the first request. */
export function sendTextOnDemand(contentType: string, make: () => Promise<string>): RequestHandler {
  let send: Promise<RequestHandler> | undefined
  return async (req, res, next) => {
    send ??= make().then((body) => sendStaticText(contentType, body))
    return (await send)(req, res, next)
  }
}

/** Returns a handler that answers an HTML page with the Content-Security-Policy `policy`. */
export function sendStaticPage(html: string, policy: string): RequestHandler {
  const sendText = sendStaticText('text/html; charset=utf-8', html)
  return (req, res, next) => {
    res.setHeader('Content-Security-Policy', policy)
    res.setHeader('Referrer-Policy', 'no-referrer')
    return sendText(req, res, next)
  }
}
