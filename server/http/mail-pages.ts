import { createHash } from 'node:crypto'
import type { Brand } from '../../contract/brand.ts'
import { readableOn } from '../../contract/readable-color.ts'
import { escaped } from '../lib/html-text.ts'
import type { PreferencesPage } from '../tracking/tracking.ts'

/** A page for readers, with the policy that allows nothing but its own style and forms. */
export type MailPage = { html: string; contentSecurityPolicy: string }

const noBrand: Brand = { name: null, accentColor: null, text: null }
const defaultAccent = '#222222'

/** The page for a link that is not whole, or whose account is gone. */
export function unknownPage(): MailPage {
  return page(noBrand, 'This link does not work', [
    '<p>It is incomplete, or its sender no longer uses it. Open it from the email again, or ask its sender.</p>',
  ])
}

/** The page for a person who saves too often. */
export function tooOftenPage(): MailPage {
  return page(noBrand, 'Please wait', ['<p>That was a lot of changes. Wait a minute, then try again.</p>'])
}

/** The page for a message that is not there any more, or not for everybody. */
export function goneMessagePage(): MailPage {
  return page(noBrand, 'This message is not available', [
    '<p>It was deleted, is no longer kept, or its sender does not show it to everybody.</p>',
  ])
}

/** The page for a reader while too many read, or a message cannot be rendered. */
export function busyPage(): MailPage {
  return page(noBrand, 'Please wait', ['<p>This page cannot be shown at the moment. Try again in a few seconds.</p>'])
}

/** The page behind a link to unsubscribe in a message that everybody reads. */
export function ownLinkPage(): MailPage {
  return page(noBrand, 'Use the link in your own email', [
    '<p>This message is shown to everybody, so its links cannot tell who you are. To unsubscribe or to change what you get, open the link in the email that was sent to you.</p>',
  ])
}

/** A message that has no HTML. */
export function textMessagePage(subject: string, text: string): MailPage {
  return page(noBrand, subject, [`<p class="text">${escaped(text)}</p>`])
}

/** The page after unsubscribing. */
export function unsubscribedPage({ brand }: Pick<PreferencesPage, 'brand'>): MailPage {
  return page(brand, 'You are unsubscribed', ['<p>You will get no more of these emails.</p>'])
}

export type Place = {
  /** The token of the link, so that forms lead to it. */
  token: string
  /** The path that is asked for: `/u/:token` or `/u/:token/preferences`. */
  at: 'link' | 'preferences'
  /** The notice above the forms. Default: none. */
  notice?: { kind: 'saved' | 'fault'; text: string }
}

/**
 * The page behind the link to unsubscribe: one button for that, and below it what the person gets. All that comes from
 * an account or a person is escaped. Forms work without scripts, and lead to relative addresses, since the service may
 * be reached below a path.
 */
export function preferencesPage({ brand, topic, preferences }: PreferencesPage, place: Place): MailPage {
  const { token, at, notice } = place
  const toLink = at === 'link' ? '' : ` action="../${token}"`
  const toPreferences = at === 'link' ? ` action="${token}/preferences"` : ''
  const what = topic === null ? 'of these emails' : `emails about “${escaped(topic)}”`
  const content = [`<p>Press the button to get no more ${what}.</p>`]
  content.push(`<form method="post"${toLink}><button>Unsubscribe</button></form>`)
  if (preferences !== null) {
    content.push('<h2>Your preferences</h2>')
    if (brand.text !== null) content.push(`<p class="text">${escaped(brand.text)}</p>`)
    if (preferences.isUnsubscribed) {
      content.push('<p>You are unsubscribed from everything. To get emails again, ask their sender.</p>')
    } else content.push(formOf(preferences, toPreferences))
  }
  if (notice) content.unshift(`<p role="${notice.kind === 'fault' ? 'alert' : 'status'}">${escaped(notice.text)}</p>`)
  return page(brand, 'Unsubscribe', content)
}

function formOf(preferences: NonNullable<PreferencesPage['preferences']>, action: string): string {
  const { topics, firstName, lastName } = preferences
  const boxes = topics.flatMap(({ id, name, description, isSubscribed }) => [
    `<input type="hidden" name="shown" value="${escaped(id)}">`,
    `<p><label><input type="checkbox" name="topic" value="${escaped(id)}"${isSubscribed ? ' checked' : ''}> ${escaped(name)}</label>`,
    description === null ? '</p>' : `<br><small>${escaped(description)}</small></p>`,
  ])
  return `<form method="post"${action}>
      ${boxes.length === 0 ? '' : `<fieldset><legend>What you get</legend>${boxes.join('\n      ')}</fieldset>`}
      <p><label>First name<br><input name="firstName" autocomplete="given-name" value="${escaped(firstName ?? '')}"></label></p>
      <p><label>Last name<br><input name="lastName" autocomplete="family-name" value="${escaped(lastName ?? '')}"></label></p>
      <p><button name="action" value="save">Save</button></p>
      <p><button name="action" value="leave" class="plain">Unsubscribe from everything</button></p>
    </form>`
}

/** Returns a whole page. `content` is HTML: what comes from outside is escaped in it. */
export function page({ name, accentColor }: Brand, title: string, content: readonly string[]): MailPage {
  const accent = accentColor ?? defaultAccent
  // The colors are the only parts that come from outside, and have the form of a color.
  const style = `body { margin: 10vh auto; max-width: 26rem; padding: 0 1.5rem; font: 1rem/1.5 sans-serif; color: #222; background: #fff; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2.5rem; }
fieldset { border: 1px solid #767676; border-radius: 0.3rem; } small { color: #555; } .text { white-space: pre-line; overflow-wrap: break-word; }
input:not([type]) { font: inherit; width: 100%; box-sizing: border-box; padding: 0.4rem; border: 1px solid #767676; border-radius: 0.3rem; }
input[type=checkbox] { accent-color: ${accent}; }
button { font: inherit; padding: 0.6rem 1.2rem; border: 1px solid #222; border-radius: 0.3rem; background: ${accent}; color: ${readableOn(accent)}; }
button.plain { background: #fff; color: #222; }`
  const html = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>${escaped(name === null ? title : `${title} – ${name}`)}</title>
    <style>${style}</style>
  </head>
  <body>
    <main>
    ${name === null ? '' : `<p><strong>${escaped(name)}</strong></p>`}
    <h1>${escaped(title)}</h1>
    ${content.join('\n    ')}
    </main>
  </body>
</html>
`
  const contentSecurityPolicy = [
    "default-src 'none'",
    `style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'`,
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; ')
  return { html, contentSecurityPolicy }
}
