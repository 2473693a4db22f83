import type { Express, Request, RequestHandler, Response } from 'express'
import { personName } from '../../contract/subscribers.ts'
import { DomainError } from '../shared/errors.ts'
import type { Asking, MailLinks, PreferencesChange } from '../tracking/tracking.ts'
import { collect } from './body.ts'
import { clientAddressOf } from './client-address.ts'
import { type MailPage, preferencesPage, tooOftenPage, unknownPage, unsubscribedPage } from './mail-pages.ts'
import { refuseOtherMethods } from './methods.ts'

/** One transparent pixel. */
const pixel = Buffer.from('R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7', 'base64')

/** Bytes of the form with preferences: 200 topics, each shown and wanted, and two names. */
const maxFormBytes = 32_768

/**
 * Serves the links in emails, without a key: pixels under `/t/o`, redirects under `/t/c`, and pages to unsubscribe
 * and to choose preferences under `/u`. Only POST changes anything, and redirects lead only to signed targets.
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
      sendMailPage(res, 404, unknownPage())
      return
    }
    res.setHeader('Referrer-Policy', 'no-referrer')
    res.status(302).setHeader('Location', new URL(link).href).end()
  })

  const ask =
    (at: 'link' | 'preferences'): RequestHandler<{ token: string }> =>
    async (req, res) => {
      const { token } = req.params
      const shown = await links.preferences(token)
      if (shown === null) sendMailPage(res, 404, unknownPage())
      else sendMailPage(res, 200, preferencesPage(shown, { token, at }))
    }
  app.get('/u/:token', ask('link'))
  app.get('/u/:token/preferences', ask('preferences'))

  // The body is ignored: a mailbox provider sends `List-Unsubscribe=One-Click`, the page an empty form.
  // No redirect: RFC 8058 §3.1 allows none.
  const unsubscribe =
    (from?: 'everything'): RequestHandler<{ token: string }> =>
    async (req, res) => {
      const { token } = req.params
      const shown = (await links.unsubscribe(token, from)) ? await links.preferences(token) : null
      if (shown === null) sendMailPage(res, 404, unknownPage())
      else sendMailPage(res, 200, unsubscribedPage(shown))
    }
  app.post('/u/:token', unsubscribe())

  const save: RequestHandler<{ token: string }> = async (req, res, next) => {
    const { token } = req.params
    const { isLeaving, change } = await readForm(req)
    if (isLeaving) {
      await unsubscribe('everything')(req, res, next)
      return
    }
    const saved = change === null ? await links.preferences(token) : await savedBy(links, token, change)
    if (saved === null) sendMailPage(res, 404, unknownPage())
    else if (saved === 'too often') sendMailPage(res, 429, tooOftenPage())
    else if (saved === 'only live') {
      const shown = await links.preferences(token)
      const place = { token, at: 'preferences', notice: ofTestEmail } as const
      sendMailPage(res, shown === null ? 404 : 403, shown === null ? unknownPage() : preferencesPage(shown, place))
    } else if (change === null)
      sendMailPage(res, 400, preferencesPage(saved, { token, at: 'preferences', notice: faultyName }))
    else sendMailPage(res, 200, preferencesPage(saved, { token, at: 'preferences', notice: isSaved }))
  }
  app.post('/u/:token/preferences', save)

  for (const path of ['/t/o/:token', '/t/c/:token']) refuseOtherMethods(app, path, ['GET'])
  for (const path of ['/u/:token', '/u/:token/preferences']) refuseOtherMethods(app, path, ['GET', 'POST'])
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

const isSaved = { kind: 'saved', text: 'Your preferences are saved.' } as const
const ofTestEmail = {
  kind: 'fault',
  text: 'Nothing was saved: this email was sent with a test key, and its links cannot bring back a topic that was left.',
} as const
const faultyName = { kind: 'fault', text: 'Nothing was saved: a name may have 200 characters.' } as const

/** `only live`: the email was sent with a test key, which cannot subscribe a person again. */
async function savedBy(links: MailLinks, token: string, change: PreferencesChange) {
  try {
    return await links.savePreferences(token, change)
  } catch (error) {
    if (error instanceof DomainError && error.code === 'authentication_error') return 'only live'
    throw error
  }
}

/** Reads the form with preferences. A null change: a name is too long, or has characters that none may have. */
async function readForm(req: Request): Promise<{ isLeaving: boolean; change: PreferencesChange | null }> {
  const form = new URLSearchParams((await collect(req, maxFormBytes)).toString())
  const [firstName, lastName] = ['firstName', 'lastName'].map((field) => {
    const name = form.get(field)?.trim() ?? ''
    return personName.nullable().safeParse(name === '' ? null : name).data
  })
  const isRight = firstName !== undefined && lastName !== undefined
  const sets = { shown: new Set(form.getAll('shown')), wanted: new Set(form.getAll('topic')) }
  return { isLeaving: form.get('action') === 'leave', change: isRight ? { firstName, lastName, ...sets } : null }
}

/** Sends a page for readers. Search engines do not list it, unless it `isIndexed`. */
export function sendMailPage(
  res: Response,
  status: number,
  { html, contentSecurityPolicy }: MailPage,
  { isIndexed = false } = {},
): void {
  res.setHeader('Content-Security-Policy', contentSecurityPolicy)
  res.setHeader('Referrer-Policy', 'no-referrer')
  if (!isIndexed) res.setHeader('X-Robots-Tag', 'noindex')
  res.status(status).type('html').send(html)
}
