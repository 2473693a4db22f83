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

/** The events are a union that `type` tells apart: this compiles only if it does. */
export function subjectOf(event: components['schemas']['Event']): string {
  switch (event.type) {
    case 'email.bounced':
      return `${event.data.to} (${event.data.bounceType}) at ${event.timestamp}`
    case 'contact.updated':
      return `${event.data.email}: ${event.data.changes.join(', ')} at ${event.created}`
    default:
      return event.id
  }
}

/** The types refuse what the service would. */
export const misspelt: components['schemas']['CreateWebhook'] = {
  url: 'https://example.com/hooks',
  // @ts-expect-error there is no such event type
  events: ['contact.creatd'],
}
