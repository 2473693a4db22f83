import type { EventTypeName } from '../../contract/event-types.ts'
import { table } from './print.ts'
import { type Receiver, startReceiver } from './receiver.ts'
import { refused } from './service.ts'
import type { StoryMeans } from './story.ts'

/** The endpoint of a webhook of a customer. */
export type Endpoint = { receiver: Receiver; webhookId: string; secret: string }

/** Starts an endpoint, registers it as a webhook for `events`, and shows both. */
export async function registerEndpoint({ service, undo }: StoryMeans, events: EventTypeName[]): Promise<Endpoint> {
  const receiver = undo.use(await startReceiver())
  const webhook = await service.webhooks.create({ body: { url: receiver.url, events, description: 'npm run demo' } })
  if (webhook.status !== 201) throw refused('the webhook could not be made', webhook)
  const { id: webhookId, secret } = webhook.body
  undo.defer(async () => {
    await service.webhooks.delete({ params: { id: webhookId } })
  })
  table([
    ['url', receiver.url],
    ['webhook', webhookId],
    ['events', webhook.body.events.join(', ')],
  ])
  return { receiver, webhookId, secret }
}
