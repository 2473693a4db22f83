import { contract } from '../../contract/index.ts'
import { openPortal } from './portal.ts'
import type { Receiver } from './receiver.ts'
import type { TestService } from './service.ts'

/** Creates a webhook with `script` in what it says of itself and in the name of its customer. Returns its id. */
export async function createHostileWebhook(
  { client }: TestService,
  { url, script }: { url: string; script: string },
): Promise<string> {
  const events = ['email.sent', 'email.delivered', 'subscriber.added'] as const
  const { id } = await client.succeed(contract.webhooks.create, {
    body: { url, events: [...events], description: script, metadata: { customer: script } },
  })
  return id
}

/**
 * Has deliveries and a recovery of the webhook, and a customer named `script` who has opened the portal and has a
 * webhook too. Returns the id of the first delivery.
 */
export async function deliverToWebhook(
  service: TestService,
  { webhook, receiver, script }: { webhook: string; receiver: Receiver; script: string },
): Promise<string> {
  const { client } = service
  const params = { id: webhook }
  const customer = await openPortal(service, { customer: script })
  await customer.send('POST', '/v1/webhooks', { json: { url: receiver.url, events: ['email.sent'] } })
  await client.succeed(contract.webhooks.test, { params, body: {} })
  await receiver.received(2)
  await client.succeed(contract.deliveries.recover, { params, body: { since: new Date().toISOString() } })
  const { data } = await client.succeed(contract.deliveries.list, { params, query: {} })
  return String(data.at(-1)?.id)
}
