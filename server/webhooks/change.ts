import type { UpdateWebhook, Webhook } from '../../contract/webhooks.ts'

export type WebhookChange = {
  after: Pick<Webhook, 'url' | 'events' | 'description' | 'metadata' | 'status' | 'disabledReason'>
  /** The names of the fields that differ. */
  changes: readonly string[]
  /** True when the run of failures ends: the webhook was enabled, or has another URL. */
  forgiven: boolean
}

/** Compares a patch with the current state of a webhook. */
export function webhookChange(before: Webhook, patch: UpdateWebhook): WebhookChange {
  const { metadata = before.metadata } = patch
  const { url = before.url, events = before.events, description = before.description, status = before.status } = patch
  const moved = url !== before.url
  const switched = status !== before.status
  return {
    after: {
      url,
      events,
      description,
      metadata,
      status,
      disabledReason: switched ? reasonOf(status) : before.disabledReason,
    },
    changes: Object.entries({
      url: moved,
      events: !isSameList(events, before.events),
      description: description !== before.description,
      metadata: !isSameMap(metadata, before.metadata),
      status: switched,
    }).flatMap(([name, differs]) => (differs ? [name] : [])),
    forgiven: moved || (switched && status === 'enabled'),
  }
}

function reasonOf(status: Webhook['status']): Webhook['disabledReason'] {
  return status === 'disabled' ? 'manual' : null
}

/** The order counts: test events are of the first type by default. */
function isSameList(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((item, index) => item === b[index])
}

function isSameMap(a: Readonly<Record<string, string>>, b: Readonly<Record<string, string>>): boolean {
  const names = Object.keys(a)
  return names.length === Object.keys(b).length && names.every((name) => Object.hasOwn(b, name) && a[name] === b[name])
}
