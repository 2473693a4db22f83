import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import type { Express, RequestHandler } from 'express'
import { DomainError } from '../../shared/errors.ts'
import { refuseOtherMethods } from '../methods.ts'
import { sendStaticPage } from '../static-responses.ts'
import { type BuiltDashboard, type BuiltFile, type Coding, readBuiltDashboard } from './built-files.ts'
import { previewFramePath, sendPreviewFrame } from './preview-frame.ts'

const builtFolder = join(import.meta.dirname, '../../dashboard/built')

type Frames = { inside: string; ancestors: string }

/**
 * Everything comes from this server. Style elements need the nonce of the response; nothing else is inline.
 *
 * @param frames What its frames may show, and in frames of which pages it may be shown.
 */
function contentSecurityPolicy(nonce: string, { inside, ancestors }: Frames): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    "connect-src 'self'",
    "img-src 'self' data:",
    "font-src 'self'",
    `style-src 'self' 'nonce-${nonce}'`,
    "style-src-attr 'none'",
    "base-uri 'none'",
    "form-action 'self'",
    `frame-src ${inside}`,
    `frame-ancestors ${ancestors}`,
  ].join('; ')
}

const notBuilt = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>Postern</title>
  </head>
  <body>
    <h1>The dashboard is not built</h1>
    <p>The service runs, but the files of the dashboard are missing. In the folder of Postern, run:</p>
    <pre>npm ci\nnpm start</pre>
    <p>This installs the tools that build it, builds it and starts the service. The image has it built.</p>
    <p>Until then everything can be done over <a href="/docs">the API</a> and with <code>npm run postern</code>.</p>
  </body>
</html>
`

export type DashboardOptions = {
  /** Origins of the pages that may show the portal in a frame. Empty: none may. */
  portalOrigins: readonly string[]
  /** Whether email is captured. Its page says so to the dashboard. */
  capturing: boolean
  /** Resolves when the dashboard is built, or cannot be. Default: nothing builds it now. */
  dashboardBuilt?: Promise<unknown> | undefined
  /** Where the dashboard was built. Default: where `npm run dashboard` builds it. */
  folder?: string
}

const yearSeconds = 365 * 24 * 3600

/** The handlers and files of one build. */
type Served = {
  sendPage: RequestHandler
  sendPortal: RequestHandler
  /** By path below `/app/`. */
  files: BuiltDashboard['files']
}

function servedOf(built: BuiltDashboard | null, { portalOrigins, capturing }: DashboardOptions): Served {
  if (built === null) return { sendPage: sendNotBuilt, sendPortal: sendNotBuilt, files: new Map() }
  const page = built.page.replaceAll('__EMAIL__', capturing ? 'captured' : 'sent')
  const ancestors = portalOrigins.length === 0 ? "'none'" : portalOrigins.join(' ')
  return {
    sendPage: sendPageOf(page, { inside: "'self'", ancestors: "'none'" }),
    sendPortal: sendPageOf(built.portalPage, { inside: "'none'", ancestors }),
    files: built.files,
  }
}

/**
 * Serves the dashboard under `/app`: its files, and its page for every other path there, which the dashboard reads; and
 * the page of the portal under `/portal`, which alone may be shown in frames. While it is being built, requests wait. If
 * it is not built, all paths answer a page that says what to do. All have GET and HEAD only. `/captured` leads to the
 * captured messages in the dashboard. Returns the paths outside of these that have GET only.
 */
export function serveDashboard(app: Express, options: DashboardOptions): string[] {
  const { dashboardBuilt, folder = builtFolder } = options
  const whenBuilt = (async () => {
    await dashboardBuilt
    return servedOf(readBuiltDashboard(folder), options)
  })()
  const sendPage: RequestHandler = async (req, res, next) => (await whenBuilt).sendPage(req, res, next)
  app.get('/portal/*path', async (req, res, next) => (await whenBuilt).sendPortal(req, res, next))
  app.get('/app', sendPage)
  app.get(previewFramePath, sendPreviewFrame)
  app.get('/app/*path', async (req, res, next) => {
    const name = req.path.slice('/app/'.length)
    const file = (await whenBuilt).files.get(name)
    if (file !== undefined) return sendFile(file)(req, res, next)
    // A page that asks for a file of another version should fail instead of reading HTML as a script.
    if (name.startsWith('assets/')) throw new DomainError('not_found', 'The dashboard has no such file: load it again.')
    return sendPage(req, res, next)
  })
  app.get('/app/', sendPage)
  for (const path of ['/app', '/app/', '/app/*path', '/portal/*path']) refuseOtherMethods(app, path, ['GET'])
  app.get('/captured', (_req, res) => res.redirect('/app/captured'))
  return ['/captured']
}

const sendNotBuilt: RequestHandler = (req, res, next) => {
  res.status(503)
  return sendStaticPage(notBuilt, "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")(
    req,
    res,
    next,
  )
}

function sendPageOf(page: string, frames: Frames): RequestHandler {
  return (_req, res) => {
    const nonce = randomBytes(16).toString('base64url')
    res.setHeader('Content-Security-Policy', contentSecurityPolicy(nonce, frames))
    res.setHeader('Referrer-Policy', 'no-referrer')
    res.setHeader('Cross-Origin-Opener-Policy', 'same-origin')
    res.setHeader('Content-Type', 'text/html; charset=utf-8')
    res.send(page.replaceAll('__NONCE__', nonce))
  }
}

function sendFile({ bodies, contentType, isHashed }: BuiltFile): RequestHandler {
  const codings = Object.keys(bodies) as Coding[]
  return (req, res) => {
    const coding = acceptedOf(req.acceptsEncodings(...codings), codings)
    res.setHeader('Content-Type', contentType)
    res.setHeader('Cache-Control', isHashed ? `public, max-age=${yearSeconds}, immutable` : 'no-cache')
    res.setHeader('Vary', 'Accept-Encoding')
    if (coding !== 'identity') res.setHeader('Content-Encoding', coding)
    res.send(bodies[coding])
  }
}

function acceptedOf(preferred: string | false, codings: readonly Coding[]): Coding {
  const best = codings.find((coding) => coding === preferred)
  return best ?? 'identity'
}
