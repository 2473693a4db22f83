import type { Mode } from '../../contract/mode.ts'
import type { Person } from './people.ts'

/** A list without a row: the heading in place of it, and what the text below says. */
export type EmptyList = { path: string; title: string; hint: RegExp }

/** The screens with neither an id in their path nor a list that may be empty. */
export const neverEmpty = [
  'overview',
  'campaigns/new',
  'event-types',
  'event-types/email.clicked',
  'settings/members',
  'settings/brand',
  'settings/usage',
  // The first member has joined.
  'settings/audit-log',
  'settings/security',
  'settings/sessions',
]

/** Of the paths of the lists, those that say something else in test mode. */
export const saysMode =
  /^(emails|campaigns|captured|inbound-messages|webhooks|logs|suppressions|imports|settings\/(api-keys|portal-sessions))$/

/** The lists of an account without anything that has a screen of its own. */
export function emptyLists(mode: Mode): EmptyList[] {
  const isLive = mode === 'live'
  return [
    { path: 'emails', title: `No emails in ${mode} mode yet`, hint: /Send one with an API key: POST \/v1\/emails/ },
    {
      path: 'campaigns',
      title: `No campaigns in ${mode} mode yet`,
      hint: isLive ? /Write a message to an audience/ : /sends to nobody/,
    },
    { path: 'templates', title: 'No templates yet', hint: /Write a message here/ },
    isLive
      ? { path: 'captured', title: 'Nothing is captured yet', hint: /Send an email with a live key/ }
      : { path: 'captured', title: 'Nothing is captured in test mode', hint: /Send with a live key/ },
    isLive
      ? { path: 'inbound-messages', title: 'No inbound messages yet', hint: /in the timeline of their email/ }
      : { path: 'inbound-messages', title: 'Nothing comes back in test mode', hint: /Switch to live mode/ },
    { path: 'domains', title: 'No domains yet', hint: /publish its records in the DNS/ },
    { path: 'webhooks', title: `No webhooks in ${mode} mode yet`, hint: /Add the URL of your program/ },
    { path: 'events', title: 'Nothing has happened yet', hint: /Send an email or add a subscriber/ },
    { path: 'logs', title: `No requests with ${mode} keys yet`, hint: /Call the API with a key/ },
    { path: 'subscribers', title: 'No subscribers yet', hint: /Add people here, or over the API/ },
    { path: 'audiences', title: 'No audiences yet', hint: /Create one for each kind of email/ },
    isLive
      ? { path: 'suppressions', title: 'No suppressed addresses', hint: /come here by themselves/ }
      : { path: 'suppressions', title: 'Suppressions are shown in live mode', hint: /Switch to live mode/ },
    { path: 'segments', title: 'No segments yet', hint: /write to some people of an audience/ },
    { path: 'segments/new', title: 'A segment needs an audience', hint: /Create it first[\s\S]*To the audiences/ },
    { path: 'topics', title: 'No topics yet', hint: /choose it in a campaign/ },
    { path: 'properties', title: 'No properties yet', hint: /Declare one/ },
    { path: 'imports', title: `No imports in ${mode} mode yet`, hint: /from a CSV file or a ZIP/ },
    { path: 'imports/new', title: 'An import needs an audience', hint: /Create it first[\s\S]*To the audiences/ },
    { path: 'settings/api-keys', title: `No ${mode} keys yet`, hint: /Create a key, then send it with each request/ },
    {
      path: 'settings/portal-sessions',
      title: `No sessions are open in ${mode} mode`,
      hint: /POST \/v1\/portal-sessions/,
    },
  ]
}

/** Makes an object of each kind whose screen has a list, as `person`. Returns those lists. */
export async function writeEmptyParts(person: Person, url: string): Promise<EmptyList[]> {
  const make = async (path: string, json: object) => {
    const { body } = await person.send('POST', path, { json })
    return Object(body).id as string
  }
  const domain = await make('/v1/domains', { name: 'empty.example' })
  const webhook = await make('/v1/webhooks', { url, events: ['email.sent'] })
  const audience = await make('/v1/audiences', { name: 'Empty' })
  const subscriber = await make('/v1/subscribers', { email: 'nobody@example.com' })
  return [
    { path: `domains/${domain}/deliverability`, title: 'Nothing bounced', hint: /none bounced/ },
    { path: `webhooks/${webhook}`, title: 'Nothing was sent to it yet', hint: /Send it a test/ },
    { path: `audiences/${audience}`, title: 'No contacts yet', hint: /Add a contact here/ },
    { path: `subscribers/${subscriber}`, title: 'In no audience yet', hint: /Add this person to one here/ },
    {
      path: `subscribers/${subscriber}`,
      title: 'No emails to this address in live mode',
      hint: /What is sent to it from now on/,
    },
  ]
}
