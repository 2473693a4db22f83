import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { z } from 'zod'
import type { CapturedMessageWithContent } from '../../contract/captured-messages.ts'
import type { EmailDetails } from '../../contract/email-resource.ts'
import { type Endpoint, registerEndpoint } from './endpoint.ts'
import { good, heading, json, table } from './print.ts'
import { isSignedBy, type ReceivedDelivery } from './receiver.ts'
import { DemoError, patienceMs, refused, type Service } from './service.ts'
import type { Story, StoryMeans } from './story.ts'

/** Shows an email from the API call to the captured message and the webhook. */
export const email: Story = {
  keyMode: 'live',
  tell,
  ending: 'The domain, the webhook and the key are taken away again; the emails stay for the retention of the service.',
  screen: '/captured',
}

const pollMs = 50

async function tell(means: StoryMeans): Promise<void> {
  heading('1. An endpoint of a customer, told what becomes of email')
  const endpoint = await registerEndpoint(means, ['email.sent', 'email.delivered', 'email.bounced'])

  heading('2. A domain to send from')
  const domain = await addDomain(means)

  heading('3. An email is sent with a live key')
  const from = `Postern <hello@${domain}>`
  const to = 'ada@example.org'
  const id = await send(means.service, { from, to: [to] })

  heading('4. It is captured instead of leaving this machine')
  const sent = await completed(means.service, id)
  showMessage(await captured(means.service, id))
  good(`The dashboard shows the last 1,000 of them: ${means.baseUrl}/captured`)

  heading('5. Its timeline')
  showTimeline(sent)

  heading('6. The webhook is told')
  const [, delivered] = await eventsOf(endpoint, [
    { type: 'email.sent', to },
    { type: 'email.delivered', to },
  ])
  if (delivered !== undefined) json(delivered.body)

  heading('7. Recipients at simulator.test play what their name says')
  const [fine, unknown] = ['delivered@simulator.test', 'bounced@simulator.test'] as const
  const played = await send(means.service, { from, to: [fine, unknown] })
  showTimeline(await completed(means.service, played))
  await eventsOf(endpoint, [
    { type: 'email.sent', to: fine },
    { type: 'email.delivered', to: fine },
    { type: 'email.bounced', to: unknown },
  ])
}

/** Adds a domain with a random name and verifies it. Returns the name. */
async function addDomain({ service, undo }: StoryMeans): Promise<string> {
  const name = `demo-${randomBytes(4).toString('hex')}.test`
  const added = await service.domains.create({ body: { name } })
  if (added.status !== 201) throw refused('the domain could not be added', added)
  const { id } = added.body
  undo.defer(async () => {
    await service.domains.delete({ params: { id } })
  })
  const checked = await service.domains.verify({ params: { id }, body: {} })
  if (checked.status !== 200) throw refused('the domain could not be verified', checked)
  if (checked.body.status !== 'verified') {
    throw new DemoError(
      'this service sends email for real, and the demo does not; run it where MAIL_TRANSPORT is capture',
    )
  }
  table([
    ['domain', id],
    ['name', name],
    ['status', checked.body.status],
  ])
  good('No DNS has names under .test: where email is captured, they are verified at once')
  return name
}

async function send(service: Service, { from, to }: { from: string; to: string[] }): Promise<string> {
  const subject = 'It is good to have you here'
  const body = { from, to, subject, html: '<p>Welcome, <b>Ada</b>!</p>', text: 'Welcome, Ada!' }
  const sent = await service.emails.send({ body })
  if (sent.status !== 202) throw refused('the email was not taken', sent)
  table([
    ['email', sent.body.id],
    ['status', sent.body.status],
    ['from', from],
    ['to', to.join(', ')],
    ['subject', subject],
  ])
  return sent.body.id
}

/** Waits until the email is completed and returns it. */
async function completed(service: Service, id: string): Promise<EmailDetails> {
  const deadline = performance.now() + patienceMs
  while (performance.now() < deadline) {
    const found = await service.emails.get({ params: { id } })
    if (found.status !== 200) throw refused('the email could not be got', found)
    if (found.body.completedAt !== null) return found.body
    await delay(pollMs)
  }
  throw new DemoError(`the email ${id} was not sent within ${patienceMs / 1000} s; the service must send (ROLES)`)
}

async function captured(service: Service, emailId: string): Promise<CapturedMessageWithContent> {
  const page = await service.capturedMessages.list({ query: { emailId } })
  if (page.status !== 200) throw refused('the captured messages could not be listed', page)
  const [message] = page.body.data
  if (message === undefined) throw new DemoError('the email was not captured')
  const found = await service.capturedMessages.get({ params: { id: message.id } })
  if (found.status !== 200) throw refused('the captured message could not be got', found)
  return found.body
}

const shownHeaders = ['DKIM-Signature', 'From', 'To', 'Subject', 'Message-ID', 'Date']

function showMessage({ id, mailFrom, headers, text }: CapturedMessageWithContent): void {
  const shown = headers.filter(({ name }) => shownHeaders.includes(name))
  table([
    ['message', id],
    ['return path', mailFrom],
    ...shown.map(({ name, value }) => [name, inShort(name, value)] as const),
    ['text', (text ?? '').trim()],
  ])
}

/** Shortens a DKIM signature to its algorithm, domain and selector. */
function inShort(name: string, value: string): string {
  if (name !== 'DKIM-Signature') return value
  return `${['a', 'd', 's'].map((tag) => new RegExp(`\\b${tag}=[^;]+;`).exec(value)?.[0]).join(' ')} …`
}

function showTimeline({ timeline }: EmailDetails): void {
  const width = Math.max(...timeline.map(({ type }) => type.length))
  table(
    timeline.map(({ at, type, recipient, reply }) => {
      const told = [type.padEnd(width), recipient, reply].filter((part) => part !== null)
      return [at, told.join('  ').trimEnd()] as const
    }),
  )
}

const event = z.object({ id: z.string(), type: z.string(), data: z.object({ to: z.string() }) })

/** Waits for these events in any order, checks their signatures and returns them in the order of `expected`. */
async function eventsOf(
  { receiver, secret }: Endpoint,
  expected: readonly { type: string; to: string }[],
): Promise<ReceivedDelivery[]> {
  const arrived = new Map<string, ReceivedDelivery>()
  while (arrived.size < expected.length) {
    const delivery = await receiver.next(patienceMs)
    if (!isSignedBy(secret, delivery)) throw new DemoError('the signature of a delivery is not right')
    const { type, data } = event.parse(JSON.parse(delivery.body))
    arrived.set(`${type} ${data.to}`, delivery)
  }
  return expected.map(({ type, to }) => {
    const delivery = arrived.get(`${type} ${to}`)
    if (delivery === undefined) throw new DemoError(`${[...arrived.keys()].join(', ')} arrived, but no ${type} ${to}`)
    good(`${type} of ${to} arrived as ${delivery.headers['webhook-id']}, and its signature is right`)
    return delivery
  })
}
