import { vi } from 'vitest'
import { contract } from '../../contract/index.ts'
import { writeHostileCampaigns } from './hostile-campaigns.ts'
import { writeHostileContacts } from './hostile-contacts.ts'
import { hostileHtml, hostileStored, mildHtml, script } from './hostile-email.ts'
import { createHostileWebhook, deliverToWebhook } from './hostile-webhooks.ts'
import { patienceMs } from './patience.ts'
import type { Person } from './people.ts'
import type { Receiver } from './receiver.ts'
import { untilLogged } from './request-logs.ts'
import type { TestService } from './service.ts'
import { insertCapturedMessage, insertInboundMessage } from './stored-messages.ts'

export type HostileAccount = Awaited<ReturnType<typeof writeHostileAccount>>

/** Puts script into every field that takes it. Returns the ids of what was made. */
export async function writeHostileAccount(
  service: TestService,
  { person, receiver }: { person: Person; receiver: Receiver },
) {
  const { client, database, accountId } = service
  const domain = await client.succeed(contract.domains.create, { body: { name: 'shop.test' } })
  const pending = await client.succeed(contract.domains.create, { body: { name: 'pending.example' } })
  const url = `${receiver.url}/?name='%22%3E${encodeURIComponent(script)}`
  const webhook = await createHostileWebhook(service, { url, script })
  const quotedScript = `"${script.replaceAll('"', "'")}"`
  const simulated = (name: string) => `${quotedScript} <${name}@simulator.test>`
  const send = async (html: string, to = [simulated('delivered'), simulated('bounced')]) => {
    const body = {
      from: `${quotedScript} <hello@shop.test>`,
      to,
      subject: script,
      html,
      text: script,
      headers: { 'X-Note': script },
      tags: ['<img src=x onerror=alert()>'],
      metadata: { '<b>': script },
    }
    return (await client.succeed(contract.emails.send, { body })).id
  }
  const email = await send(mildHtml)
  const hostileEmail = await send(hostileHtml)
  const bounced = await send(mildHtml, [simulated('bounced')])
  await client.succeed(contract.contactProperties.create, { body: { key: 'plan', type: 'string', fallback: script } })
  const subscriber = await client.succeed(contract.subscribers.create, {
    body: { email: 'ada@example.com', firstName: script, lastName: script, properties: { plan: script } },
  })
  const audience = await client.succeed(contract.audiences.create, { body: { name: script, description: script } })
  await client.succeed(contract.contacts.add, {
    params: { audienceId: audience.id },
    body: { email: 'ada@example.com' },
  })
  await client.succeed(contract.suppressions.create, { body: { address: 'ada@example.com' } })
  const campaigns = await writeHostileCampaigns(service, { audienceId: audience.id, script, mildHtml, hostileHtml })
  const contacts = await writeHostileContacts(service, { audienceId: audience.id, script })
  await client.succeed(contract.apiKeys.create, { body: { name: script, permissions: ['emails:send'] } })
  await person.send('POST', '/v1/invitations', { json: { email: 'grace@example.com', role: 'developer' } })
  await person.send('PATCH', '/v1/user', { json: { name: script } })
  const delivery = await deliverToWebhook(service, { webhook, receiver, script })
  const { data: events } = await client.succeed(contract.events.list, { query: {} })
  const capture = (html: string) => insertCapturedMessage(database, hostileStored(accountId, html))
  const comeBack = (html: string, emailId: string) =>
    insertInboundMessage(database, { ...hostileStored(accountId, html), emailId, reason: script })
  const captured = await capture(mildHtml)
  const hostileCaptured = await capture(hostileHtml)
  const inbound = await comeBack(mildHtml, email)
  const hostileInbound = await comeBack(hostileHtml, hostileEmail)
  await client.send('POST', '/v1/domains', { json: { name: script, [script]: script } })
  const failed = await untilLogged(service, { status: '4xx' })
  await untilSent(service, [email, hostileEmail, bounced])
  await answerWithScript(service, person)
  return {
    ...campaigns,
    domain: domain.id,
    pending: pending.id,
    webhook,
    delivery,
    event: String(events[0]?.id),
    email,
    hostileEmail,
    captured,
    hostileCaptured,
    inbound,
    hostileInbound,
    subscriber: subscriber.id,
    audience: audience.id,
    segment: contacts.segment,
    import: contacts.import,
    failed,
  }
}

async function untilSent({ client }: TestService, ids: readonly string[]): Promise<void> {
  for (const id of ids) {
    const isOver = async () => (await client.succeed(contract.emails.get, { params: { id } })).completedAt !== null
    await vi.waitUntil(isOver, { timeout: patienceMs })
  }
}

/** Puts script into the answers of mail servers, which the simulator does not, and into the browser of the person. */
async function answerWithScript({ database: { db }, accountId }: TestService, { userId }: Person): Promise<void> {
  const ofAccount = db.selectFrom('emails').select('id').where('account_id', '=', accountId)
  const said = { detail: script, reply: script, host: script }
  await db.updateTable('email_timeline').set(said).where('email_id', 'in', ofAccount).execute()
  await db.updateTable('email_recipients').set({ reason: script }).where('account_id', '=', accountId).execute()
  await db.updateTable('user_sessions').set({ user_agent: script }).where('user_id', '=', userId).execute()
}

/** Returns every screen with something on it, by its path below the account and the mode. */
export function hostileScreens(made: HostileAccount): string[] {
  return [
    'overview',
    'emails',
    `emails/${made.email}`,
    'campaigns',
    'campaigns/new',
    `campaigns/${made.draft}`,
    `campaigns/${made.draft}/edit`,
    `campaigns/${made.sent}`,
    `campaigns/${made.paused}`,
    'templates',
    `templates/${made.template}`,
    'captured',
    `captured/${made.captured}`,
    'inbound-messages',
    `inbound-messages/${made.inbound}`,
    'domains',
    `domains/${made.domain}`,
    `domains/${made.pending}`,
    `domains/${made.domain}/deliverability`,
    'webhooks',
    `webhooks/${made.webhook}`,
    `webhooks/${made.webhook}/receiver`,
    `webhooks/${made.webhook}/deliveries/${made.delivery}`,
    'event-types',
    'event-types/email.clicked',
    'events',
    `events/${made.event}`,
    'logs',
    `logs/${made.failed}`,
    'subscribers',
    `subscribers/${made.subscriber}`,
    'audiences',
    `audiences/${made.audience}`,
    'suppressions',
    'segments',
    'segments/new',
    `segments/${made.segment}`,
    'topics',
    'properties',
    'imports',
    'imports/new',
    `imports/${made.import}`,
    'settings/api-keys',
    'settings/members',
    'settings/brand',
    'settings/portal-sessions',
    'settings/usage',
    'settings/audit-log',
    'settings/security',
    'settings/sessions',
  ]
}
