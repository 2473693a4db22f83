import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { DeliveryWithAttempts } from '../../contract/deliveries.ts'
import { registerEndpoint } from './endpoint.ts'
import { bad, good, heading, json, table } from './print.ts'
import { isSignedBy, type ReceivedDelivery } from './receiver.ts'
import { DemoError, patienceMs, refused, type Service } from './service.ts'
import type { Story, StoryMeans } from './story.ts'

/** Shows a change over the API, the signed delivery and the scheduled retry. */
export const webhooks: Story = {
  keyMode: 'test',
  tell,
  ending: 'All of it is taken away again: the webhook, the audience, the contact and the key.',
  screen: '/app',
}

async function tell(means: StoryMeans): Promise<void> {
  const { service, undo } = means
  heading('1. An endpoint of a customer, registered as a webhook')
  const { receiver, webhookId, secret } = await registerEndpoint(means, ['contact.created', 'contact.updated'])

  heading('2. A contact is added over the API, and the event arrives')
  const audience = await service.audiences.create({ body: { name: 'npm run demo' } })
  if (audience.status !== 201) throw refused('the audience could not be made', audience)
  const audienceId = audience.body.id
  undo.defer(async () => {
    await service.audiences.delete({ params: { id: audienceId } })
  })
  const email = `ada-${randomBytes(4).toString('hex')}@example.com`
  const contact = await service.contacts.add({ params: { audienceId }, body: { email, firstName: 'Ada' } })
  if (contact.status !== 201) throw refused('the contact could not be added', contact)
  const { subscriberId } = contact.body
  undo.defer(async () => {
    await service.subscribers.delete({ params: { id: subscriberId } })
  })
  const first = await receiver.next(patienceMs)
  showDelivery(first)
  if (!isSignedBy(secret, first)) throw new DemoError('the signature of the delivery is not right')
  good('X-Service-Signature is the HMAC-SHA-256 of these bytes with the secret of the webhook')

  heading('3. The endpoint fails, and the retry is scheduled')
  receiver.answerWith(500)
  const change = await service.contacts.update({ params: { audienceId, subscriberId }, body: { firstName: 'Augusta' } })
  if (change.status !== 200) throw refused('the contact could not be changed', change)
  const second = await receiver.next(patienceMs)
  bad(`${second.headers['webhook-id']} (contact.updated) arrived and was answered ${second.answered}`)
  showSchedule(await firstFailure(service, webhookId))
}

function showDelivery({ headers, body }: ReceivedDelivery): void {
  const shown = ['content-type', 'user-agent', 'webhook-id', 'webhook-timestamp', 'webhook-signature']
  table(['x-service-signature', ...shown].map((name) => [name, String(headers[name] ?? '(missing)')] as const))
  json(body)
}

/** Waits until the first attempt of the delivery of the change is in the log, and returns the delivery. */
async function firstFailure(service: Service, webhookId: string): Promise<DeliveryWithAttempts> {
  const deadline = performance.now() + patienceMs
  while (performance.now() < deadline) {
    const page = await service.deliveries.list({ params: { id: webhookId }, query: { eventType: 'contact.updated' } })
    if (page.status !== 200) throw refused('the deliveries could not be listed', page)
    const [delivery] = page.body.data
    if (delivery !== undefined && delivery.attemptCount > 0) {
      const found = await service.deliveries.get({ params: { id: webhookId, deliveryId: delivery.id } })
      if (found.status !== 200) throw refused('the delivery could not be got', found)
      return found.body
    }
    await delay(50)
  }
  throw new DemoError('the failed attempt did not appear in the log of the webhook')
}

function showSchedule(delivery: DeliveryWithAttempts): void {
  const [attempt] = delivery.attempts
  table([
    ['delivery', delivery.id],
    ['status', delivery.status],
    ['attempt 1', `${attempt?.startedAt}, ${attempt?.durationMs} ms: ${attempt?.error}`],
    ['nextAttemptAt', `${delivery.nextAttemptAt} (${untilRetry(delivery)})`],
  ])
}

/** Returns the time from the end of the last attempt to the next one, for people. */
function untilRetry({ attempts, nextAttemptAt }: DeliveryWithAttempts): string {
  const last = attempts.at(-1)
  if (last === undefined || nextAttemptAt === null) return 'no retry is due'
  const ended = Date.parse(last.startedAt) + last.durationMs
  return `in ${Math.round((Date.parse(nextAttemptAt) - ended) / 1000)} s`
}
