import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { DeliveryWithAttempts } from '../contract/deliveries.ts'
import { bad, good, heading, json, line, table } from './demo/print.ts'
import { isSignedBy, type ReceivedDelivery, startReceiver } from './demo/receiver.ts'
import { assertRunning, clientOf, DemoError, makeKey, refused, type Service } from './demo/service.ts'

/** How long a delivery may take before something is wrong. Milliseconds. */
const patienceMs = 15_000

/** Shows a running service at work, from the API call to the signed delivery and the scheduled retry. */
async function demonstrate(env: NodeJS.ProcessEnv): Promise<void> {
  const baseUrl = env.POSTERN_URL || `http://${env.HOST || '127.0.0.1'}:${env.PORT || 3000}`
  await assertRunning(baseUrl)

  // What is made here is taken away again, last first, also when something fails on the way.
  await using undo = new AsyncDisposableStack()
  const key = env.POSTERN_API_KEY || undo.use(await makeKey()).key
  const service = clientOf(baseUrl, key)

  heading('1. An endpoint of a customer, registered as a webhook')
  const receiver = undo.use(await startReceiver())
  const webhook = await service.webhooks.create({
    body: { url: receiver.url, events: ['contact.created', 'contact.updated'], description: 'npm run demo' },
  })
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

/** The delivery of the change, once its first attempt stands in the log. */
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

/** How long after the end of the last attempt the next one is due. */
function untilRetry({ attempts, nextAttemptAt }: DeliveryWithAttempts): string {
  const last = attempts.at(-1)
  if (last === undefined || nextAttemptAt === null) return 'no retry is due'
  const ended = Date.parse(last.startedAt) + last.durationMs
  return `in ${Math.round((Date.parse(nextAttemptAt) - ended) / 1000)} s`
}

try {
  await demonstrate(process.env)
  line('')
  line('All of it is taken away again: the webhook, the audience, the contact and the key.')
} catch (error) {
  if (!(error instanceof DemoError)) throw error
  console.error(`demo: ${error.message}`)
  process.exitCode = 1
}
