import { createClient } from '../generated/hey-api/client/index.ts'
import {
  createSubscriber,
  createWebhook,
  deleteWebhook,
  getWebhook,
  listEvents,
  listWebhooks,
  updateWebhook,
} from '../generated/hey-api/sdk.gen.ts'
import type { CreateWebhook, Event, PushedEvent, WebhookWithSecret } from '../generated/hey-api/types.gen.ts'
import type { Target, Tour } from './tour.ts'

/** What a user of @hey-api/openapi-ts would write. */
export async function tour({ baseUrl, apiKey }: Target): Promise<Tour> {
  const client = createClient({ baseUrl, auth: apiKey })

  const created = await createWebhook({
    client,
    headers: { 'Idempotency-Key': 'hey-api' },
    body: { url: 'https://example.com/hooks', events: ['contact.created'] },
  })
  if (created.error) throw new Error(created.error.error.message)
  const { id, secret }: WebhookWithSecret = created.data

  const changed = await updateWebhook({ client, path: { id }, body: { status: 'disabled' } })
  const listed = await listWebhooks({ client, query: { limit: 100 } })
  const deleted = await deleteWebhook({ client, path: { id } })
  const missing = await getWebhook({ client, path: { id } })

  return {
    id,
    secret,
    disabledReason: changed.data?.disabledReason ?? null,
    listed: listed.data?.data.map((webhook) => webhook.id) ?? [],
    deleteStatus: deleted.response?.status ?? null,
    missingCode: missing.error?.error.code ?? null,
  }
}

/** Events are a union that `type` tells apart, listed and pushed: this compiles only if they are. */
export function subjectOf(event: Event | PushedEvent): string {
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
  const event: PushedEvent = JSON.parse(body)
  return subjectOf(event)
}

/** Adds a subscriber, and says what the listed events of new subscribers are about. */
export async function addSubscriber({ baseUrl, apiKey }: Target, email: string): Promise<string[]> {
  const client = createClient({ baseUrl, auth: apiKey })
  await createSubscriber({ client, body: { email }, throwOnError: true })
  const { data } = await listEvents({ client, query: { type: 'subscriber.added' }, throwOnError: true })
  return data.data.map(subjectOf)
}

/** The types refuse what the service would. */
export const misspelt: CreateWebhook = {
  url: 'https://example.com/hooks',
  // @ts-expect-error there is no such event type
  events: ['contact.creatd'],
}
