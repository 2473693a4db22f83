import createClient from 'openapi-fetch'
import type { components, paths } from '../generated/openapi-typescript/schema.ts'
import type { Target, Tour } from './tour.ts'

/** What a user of openapi-typescript and openapi-fetch would write. */
export async function tour({ baseUrl, apiKey }: Target): Promise<Tour> {
  const client = createClient<paths>({ baseUrl, headers: { authorization: `Bearer ${apiKey}` } })

  const created = await client.POST('/v1/webhooks', {
    params: { header: { 'Idempotency-Key': 'openapi-fetch' } },
    body: { url: 'https://example.com/hooks', events: ['contact.created'] },
  })
  if (created.error) throw new Error(created.error.error.message)
  const { id, secret }: components['schemas']['WebhookWithSecret'] = created.data

  const changed = await client.PATCH('/v1/webhooks/{id}', { params: { path: { id } }, body: { status: 'disabled' } })
  const listed = await client.GET('/v1/webhooks', { params: { query: { limit: 100 } } })
  const deleted = await client.DELETE('/v1/webhooks/{id}', { params: { path: { id } } })
  const missing = await client.GET('/v1/webhooks/{id}', { params: { path: { id } } })

  return {
    id,
    secret,
    disabledReason: changed.data?.disabledReason ?? null,
    listed: listed.data?.data.map((webhook) => webhook.id) ?? [],
    deleteStatus: deleted.response.status,
    missingCode: missing.error?.error.code ?? null,
  }
}

/** Events are a union that `type` tells apart, listed and pushed: this compiles only if they are. */
export function subjectOf(event: components['schemas']['Event' | 'PushedEvent']): string {
  switch (event.type) {
    case 'email.bounced':
      return `${event.data.to} (${event.data.bounceType}) at ${event.timestamp}`
    case 'contact.updated':
      return `${event.data.email}: ${event.data.changes.join(', ')} at ${event.created}`
    case 'subscriber.added':
      return `${event.data.email} is ${event.data.status}`
    default:
      return event.id
  }
}

/** What the body of a delivery is about. */
export function subjectOfPushed(body: string): string {
  const event: components['schemas']['PushedEvent'] = JSON.parse(body)
  return subjectOf(event)
}

/** Adds a subscriber, and says what the listed events of new subscribers are about. */
export async function addSubscriber({ baseUrl, apiKey }: Target, email: string): Promise<string[]> {
  const client = createClient<paths>({ baseUrl, headers: { authorization: `Bearer ${apiKey}` } })
  await client.POST('/v1/subscribers', { body: { email } })
  const listed = await client.GET('/v1/events', { params: { query: { type: 'subscriber.added' } } })
  if (listed.error) throw new Error(listed.error.error.message)
  return listed.data.data.map(subjectOf)
}

/** The types refuse what the service would. */
export const misspelt: components['schemas']['CreateWebhook'] = {
  url: 'https://example.com/hooks',
  // @ts-expect-error there is no such event type
  events: ['contact.creatd'],
}
