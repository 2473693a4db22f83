import type { Express, RequestHandler, Response } from 'express'
import type { Brand } from '../../contract/brand.ts'
import type { ConfirmationPage, ConfirmationState, Confirmations } from '../confirmations/confirm.ts'
import { escaped } from '../lib/html-text.ts'
import { sendMailPage } from './mail-links.ts'
import { type MailPage, page, tooOftenPage, unknownPage } from './mail-pages.ts'
import { refuseOtherMethods } from './methods.ts'

const path = '/confirm/:token'

/**
 * Serves the links that confirm a subscription. GET shows a page with one button and changes nothing, since scanners and
 * mail programs open links; only POST confirms. It needs no cookie and takes nothing but the token in its path, so a page
 * elsewhere that posts there can do no more than the holder of the link.
 */
export function serveConfirmationLinks(app: Express, confirmations: Confirmations): void {
  const show: RequestHandler<{ token: string }> = async (req, res) => {
    send(res, await confirmations.show(req.params.token), req.params.token)
  }
  const confirm: RequestHandler<{ token: string }> = async (req, res) => {
    const found = await confirmations.confirm(req.params.token)
    if (found === 'too often') sendMailPage(res, 429, tooOftenPage())
    else send(res, found, req.params.token)
  }
  app.get(path, show)
  // The body is ignored: the page sends an empty form.
  app.post(path, confirm)
  refuseOtherMethods(app, path, ['GET', 'POST'])
}

function send(res: Response, found: ConfirmationPage | null, token: string): void {
  if (found === null) sendMailPage(res, 404, unknownPage())
  else sendMailPage(res, statuses[found.state], confirmationPage(found, token))
}

const statuses: Readonly<Record<ConfirmationState, number>> = {
  asks: 200,
  confirmed: 200,
  gone: 404,
  expired: 410,
  unsubscribed: 409,
  suppressed: 409,
  test: 403,
}

type Told = { title: string; text: string }

/** The title and text of the page, by state, where there is nothing to confirm. */
const told: Readonly<Record<Exclude<ConfirmationState, 'asks'>, (name: string) => Told>> = {
  confirmed: (name) => ({ title: 'You are subscribed', text: `You get emails of ${name} from now on.` }),
  gone: () => ({
    title: 'This link does not work',
    text: 'Its sender no longer has your address on the list. To get the emails, subscribe again.',
  }),
  expired: () => ({
    title: 'This link is too old',
    text: 'A link to confirm holds for 7 days. To get the emails, subscribe again, or ask their sender for a new link.',
  }),
  unsubscribed: () => ({
    title: 'You are unsubscribed',
    text: 'You unsubscribed after this email was sent, so nothing was changed. To get the emails, ask their sender.',
  }),
  suppressed: (name) => ({
    title: 'Your address gets no emails',
    text: `Emails to it came back, or it was reported or blocked, so nothing was changed. Ask ${name} to look at it.`,
  }),
  test: () => ({
    title: 'Nothing was confirmed',
    text: 'This email was sent with a test key, whose links confirm nobody.',
  }),
}

/** The page of a link that a person asked for by subscribing. All that comes from an account is escaped. */
function confirmationPage({ brand, audienceName, state }: ConfirmationPage, token: string): MailPage {
  const name = nameOf(brand, audienceName)
  if (state !== 'asks') {
    const { title, text } = told[state](name)
    return page(brand, title, [`<p>${escaped(text)}</p>`])
  }
  return page(brand, 'Confirm your subscription', [
    `<p>Press the button to get emails of ${escaped(name)}.</p>`,
    // Relative, since the service may be reached below a path.
    `<form method="post" action="${escaped(encodeURIComponent(token))}"><button>Confirm</button></form>`,
  ])
}

function nameOf({ name }: Brand, audienceName: string | null): string {
  const known = name ?? audienceName
  return known === null ? 'their sender' : `“${known}”`
}
