import type { UpdateWebhook, Webhook } from '../../contract/webhooks.ts'

export type WebhookChange = {
  after: Pick<Webhook, 'url' | 'events' | 'description' | 'status' | 'disabledReason'>
  /** Whether anything differs. */
  changed: boolean
  /** Whether the record of failures starts anew: the webhook was enabled, or leads somewhere else. */
  forgiven: boolean
}

/** Compares what is asked for with what is there. */
export function changeOf(before: Webhook, patch: UpdateWebhook): WebhookChange {
  const { url = before.url, events = before.events, description = before.description, status = before.status } = patch
  const moved = url !== before.url
  const switched = status !== before.status
  return {
    after: { url, events, description, status, disabledReason: switched ? reasonOf(status) : before.disabledReason },
    changed: moved || switched || description !== before.description || !isSameList(events, before.events),
    forgiven: moved || (switched && status === 'enabled'),
  }
}

function reasonOf(status: Webhook['status']): Webhook['disabledReason'] {
  return status === 'disabled' ? 'manual' : null
}

/** The order counts: the first type is the one a test event is of. */
function isSameList(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((item, index) => item === b[index])
}
