import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Express, RequestHandler } from 'express'
import { sendStaticPage, sendStaticText } from '../static-responses.ts'

/**
 * The page, its scripts and its other files come from this server. The frame of a message inherits this policy: the
 * message may have styles and embedded images, but cannot run scripts or load anything.
 */
const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

const notices = {
  capturing:
    'Nothing leaves this machine: messages are kept, the newest 1,000 of each account, and shown here. A test key sends nothing, so there is nothing of it.',
  sending:
    'This service really sends its email, so nothing is captured. With MAIL_TRANSPORT=capture, messages are kept and shown here instead.',
}

/**
 * Serves the page of captured messages under `/captured`. The page asks for an API key and keeps it while its tab is
 * open. Returns the paths, which have GET only.
 */
export function serveCaptured(app: Express, { capturing }: { capturing: boolean }): string[] {
  const page = read('page.html').replace('{{notice}}', capturing ? notices.capturing : notices.sending)
  const handlers: Record<string, RequestHandler> = {
    '/captured': sendStaticPage(page, contentSecurityPolicy),
    '/captured/page.css': sendStaticText('text/css; charset=utf-8', read('page.css')),
    '/captured/page.js': sendStaticText('text/javascript; charset=utf-8', read('page.js')),
  }
  for (const [path, handler] of Object.entries(handlers)) app.get(path, handler)
  return Object.keys(handlers)
}

function read(name: string): string {
  return readFileSync(join(import.meta.dirname, name), 'utf8')
}
