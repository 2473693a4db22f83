import { hash } from 'node:crypto'
import type { RequestHandler } from 'express'
import { sendStaticPage } from '../static-responses.ts'

/** Where the dashboard has the page in a frame. */
export const previewFramePath = '/app/preview-frame'

/** Shows the document that the page around it sends, in a frame of its own that runs nothing. */
const script = `
addEventListener('message', ({ source, data }) => {
  if (source !== parent || parent === window || typeof data !== 'string') return
  const frame = document.createElement('iframe')
  frame.title = 'Message'
  frame.setAttribute('sandbox', 'allow-popups allow-popups-to-escape-sandbox')
  frame.srcdoc = data
  document.body.replaceChildren(frame)
})
`

const style = 'html, body, iframe { margin: 0; border: 0; width: 100%; height: 100%; display: block; overflow: hidden }'

const page = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <title>Preview</title>
    <style>${style}</style>
  </head>
  <body><script>${script}</script></body>
</html>
`

/**
 * The frame inside inherits it. The sandbox gives both an origin of their own, so that neither has the cookies or the
 * storage of the dashboard, and that requests of theirs have no `Referer`. Images come over TLS alone: a message shall
 * not reach the devices of the network that its reader is in, which have no certificate.
 */
const policy = [
  'sandbox allow-scripts allow-popups allow-popups-to-escape-sandbox',
  "default-src 'none'",
  `script-src 'sha256-${hash('sha256', script, 'base64')}'`,
  "style-src 'unsafe-inline'",
  'img-src https: data:',
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'self'",
].join('; ')

/**
 * Answers the page that shows a message with its remote images. The policy of the dashboard, which a frame without an
 * address of its own inherits, lets none be loaded: so this page has another one, and the dashboard sends it the message.
 * It holds nothing by itself, and takes messages from the page that it is framed in alone, which is one of this service.
 */
export const sendPreviewFrame: RequestHandler = sendStaticPage(page, policy)
