import { setTimeout as delay } from 'node:timers/promises'
import type { CampaignStatistics } from '../../contract/campaign-statistics.ts'
import { startLiveService } from '../support/live-service.ts'
import { bad, good, heading, line, table } from './print.ts'
import { clientOf, DemoError, refused, type Service } from './service.ts'
import type { OwnStory } from './story.ts'

/** Shows a campaign from a CSV to its last message, through a kill of the service in the middle. */
export const campaign: OwnStory = {
  keyMode: null,
  tell,
  ending: 'The service that was started for this is stopped, and its data is deleted.',
}

const usualPeople = 1_000
const people = { least: 50, most: 1_000 }
/** Every one of so many has the plan "pro"; the campaign goes to the others. */
const proEvery = 5
/** The service is killed when so much of the campaign is handed over. */
const killAt = 0.2
/** Progress is shown in steps of this much. */
const shownSteps = 0.2
const pollMs = 50
/** The claims of a process that died lapse after 20 to 35 seconds. */
const patienceMs = 180_000

async function tell(size: string | undefined): Promise<void> {
  const count = size === undefined ? usualPeople : Number(size)
  if (!Number.isInteger(count) || count < people.least || count > people.most) {
    throw new DemoError(`the number of people must be from ${people.least} to ${people.most}, not "${size}"`)
  }
  line('This starts a service of its own on a free port of this machine, with its data in a temporary directory.')
  await using own = await startLiveService({ MAIL_TRANSPORT: 'capture', MAIL_CONNECTIONS_PER_HOST: '2' })
  const service = clientOf(own.url, own.apiKey)
  good(`It runs at ${own.url}, and captures every email`)

  heading(`1. A CSV file of ${count} people is imported`)
  const audienceId = await importPeople({ url: own.url, key: own.apiKey, service, count })

  heading('2. A segment of them')
  const { segmentId, inSegment } = await addSegment(service, audienceId)

  heading('3. A campaign to the segment is sent')
  const campaignId = await send(service, { audienceId, segmentId })

  heading('4. The service is killed in the middle, and started again')
  await untilHandedOver(service, campaignId, ({ handedOver, recipients }) => handedOver >= killAt * recipients)
  await own.kill()
  bad('kill -9: the process is gone')
  await own.restart()
  good('It is started again. What the dead one had claimed is taken up when the claims lapse, after some 30 seconds')

  heading('5. It goes on to the end')
  const end = await untilHandedOver(service, campaignId, ({ waiting, queued }) => waiting + queued === 0)

  heading('6. Each person got it once')
  await prove(service, { campaignId, count: inSegment, end })
}

type ImportMeans = { url: string; key: string; service: Service; count: number }

async function importPeople({ url, key, service, count }: ImportMeans): Promise<string> {
  const audience = await service.audiences.create({ body: { name: 'Newsletter' } })
  if (audience.status !== 201) throw refused('the audience could not be made', audience)
  const property = await service.contactProperties.create({ body: { key: 'plan', type: 'string' } })
  if (property.status !== 201) throw refused('the property could not be declared', property)
  const rows = Array.from({ length: count }, (_, n) => `person-${n}@example.org,Person ${n},${planOf(n)}`)
  const file = `email,first_name,plan\n${rows.join('\n')}\n`
  const answer = await fetch(`${url}/v1/imports?audienceId=${audience.body.id}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'text/csv' },
    body: file,
  })
  const started = { status: answer.status, body: await answer.json() }
  if (started.status !== 202) throw refused('the file was not taken', started)
  const { id } = started.body as { id: string }
  for (const since = performance.now(); ; await delay(pollMs)) {
    const found = await service.imports.get({ params: { id } })
    if (found.status !== 200) throw refused('the import could not be read', found)
    const { status, rowsRead, created, skipped, failed } = found.body
    if (status === 'failed') throw new DemoError(`the import failed: ${found.body.failureReason}`)
    if (status === 'completed') {
      table([
        ['import', id],
        ['rows', `${rowsRead} read, ${created} created, ${skipped} skipped, ${failed} failed`],
      ])
      return audience.body.id
    }
    if (performance.now() - since > patienceMs) throw new DemoError(`the import is still ${status}`)
  }
}

function planOf(person: number): 'pro' | 'free' {
  return person % proEvery === 0 ? 'pro' : 'free'
}

async function addSegment(service: Service, audienceId: string): Promise<{ segmentId: string; inSegment: number }> {
  const conditions = { type: 'property', property: 'plan', operator: 'is', value: 'free' } as const
  const segment = await service.segments.create({ body: { audienceId, name: 'On the free plan', conditions } })
  if (segment.status !== 201) throw refused('the segment could not be made', segment)
  const preview = await service.segments.preview({ body: { audienceId, conditions } })
  if (preview.status !== 200) throw refused('the segment could not be counted', preview)
  const { count } = preview.body
  table([
    ['segment', segment.body.id],
    ['people', `${count}`],
  ])
  return { segmentId: segment.body.id, inSegment: count }
}

async function send(
  service: Service,
  { audienceId, segmentId }: { audienceId: string; segmentId: string },
): Promise<string> {
  const name = 'demo.test'
  const domain = await service.domains.create({ body: { name } })
  if (domain.status !== 201) throw refused('the domain could not be added', domain)
  const checked = await service.domains.verify({ params: { id: domain.body.id }, body: {} })
  if (checked.status !== 200) throw refused('the domain could not be verified', checked)
  const body = {
    name: 'Spring news',
    audienceId,
    segmentIds: [segmentId],
    from: `Postern <news@${name}>`,
    subject: 'Spring is here, {{ contact.firstName }}',
    content: { html: '<p>Hello {{ contact.firstName }}. <a href="{{ unsubscribeUrl }}">Unsubscribe</a></p>' },
  }
  const draft = await service.campaigns.create({ body })
  if (draft.status !== 201) throw refused('the campaign could not be made', draft)
  const { id } = draft.body
  const sent = await service.campaigns.send({ params: { id }, body: {} })
  if (sent.status !== 202) throw refused('the campaign could not be sent', sent)
  table([
    ['campaign', id],
    ['subject', body.subject],
  ])
  return id
}

/** Shows the progress of a campaign until it is `enough`. */
async function untilHandedOver(
  service: Service,
  id: string,
  enough: (statistics: CampaignStatistics) => boolean,
): Promise<CampaignStatistics> {
  let shown = 0
  for (const since = performance.now(); ; await delay(pollMs)) {
    const found = await service.campaigns.statistics({ params: { id } })
    if (found.status !== 200) throw refused('the campaign could not be counted', found)
    const { recipients, handedOver, queued, waiting } = found.body
    const isEnough = recipients > 0 && enough(found.body)
    if (handedOver >= shown + shownSteps * recipients || isEnough) {
      line(`${bar(handedOver, recipients)} ${handedOver} handed over, ${queued} queued, ${waiting} waiting`)
      shown = handedOver
    }
    if (isEnough) return found.body
    if (performance.now() - since > patienceMs)
      throw new DemoError(`the campaign stays at ${JSON.stringify(found.body)}`)
  }
}

const barWidth = 20

function bar(done: number, all: number): string {
  const full = all === 0 ? 0 : Math.floor((done / all) * barWidth)
  return `[${'#'.repeat(full)}${'.'.repeat(barWidth - full)}]`
}

async function prove(
  service: Service,
  { campaignId, count, end }: { campaignId: string; count: number; end: CampaignStatistics },
): Promise<void> {
  const copies = new Map<string, string[]>()
  for (let cursor: string | null = null; ; ) {
    const page = await service.capturedMessages.list({ query: { limit: 100, ...(cursor !== null && { cursor }) } })
    if (page.status !== 200) throw refused('the captured messages could not be listed', page)
    for (const message of page.body.data) {
      for (const to of message.recipients) copies.set(to, [...(copies.get(to) ?? []), message.emailId ?? 'unknown'])
    }
    cursor = page.body.nextCursor
    if (cursor === null) break
  }
  const twice = [...copies.values()].filter((emails) => emails.length > 1)
  if (twice.some((emails) => new Set(emails).size > 1)) throw new DemoError('somebody got two emails of the campaign')
  if (copies.size !== count || end.handedOver !== count) {
    throw new DemoError(`${copies.size} of ${count} people got it, and ${end.handedOver} are counted`)
  }
  for (const type of ['campaign.sent', 'campaign.completed'] as const) {
    const events = await eventsOf(service, type)
    if (events !== 1) throw new DemoError(`there are ${events} events ${type}`)
  }
  table([
    ['campaign', campaignId],
    ['people', `${count}`],
    ['got it', `${copies.size}`],
    ['counted as handed over', `${end.handedOver}`],
    ['sent again', `${twice.length}`],
  ])
  good('One email for each person, campaign.sent once, campaign.completed once')
  if (twice.length > 0) {
    line(
      `For ${twice.length}, the process died after the mail server had the message and before its answer was stored: they got the same email again, with the same Message-ID. SMTP cannot tell more.`,
    )
  }
}

/** Returns how many events of a type there are, once there is one. */
async function eventsOf(service: Service, type: 'campaign.sent' | 'campaign.completed'): Promise<number> {
  for (const since = performance.now(); ; await delay(pollMs)) {
    const page = await service.events.list({ query: { type } })
    if (page.status !== 200) throw refused('the events could not be listed', page)
    const { length } = page.body.data
    if (length > 0 || performance.now() - since > patienceMs) return length
  }
}
