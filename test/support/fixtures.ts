import type { SchemaObject } from 'openapi3-ts/oas31'
import type { CampaignStatus } from '../../contract/campaign-resource.ts'
import { contract } from '../../contract/index.ts'
import type { TestClient } from './client.ts'
import type { TestDatabase } from './database.ts'
import { dereference, type Operation, operationById } from './published-spec.ts'
import { insertRequestLog } from './request-logs.ts'
import { insertCapturedMessage, insertInboundMessage, messageWithFile } from './stored-messages.ts'

export type PathParameters = Record<string, string>

/** The fixtures for a call of each operation: existing objects, and a body. */
export type Fixtures = {
  /** Makes the objects that the path of the operation names, new each time. */
  parametersFor(operation: Operation): Promise<PathParameters>
  /** The example of the published spec, with an address nobody has yet. Undefined: takes no body. */
  bodyFor(operation: Operation): unknown
  /** The key it succeeds with, if not that of the client: a test key sends from any domain, and sees what it sent. */
  keyFor(operation: Operation): string | undefined
  /** An address nobody has yet. */
  newEmail(): string
}

/** Nothing listens there: what is sent to it is refused at once. */
export const deadUrl = 'http://127.0.0.1:9/hooks'

/** Where fixtures are made: a test service. */
type World = { client: TestClient; database: Pick<TestDatabase, 'db'>; accountId: string; keys: { test: string } }

/** Makes everything as a client does; what only the service itself makes, in its database. */
export function createFixtures({ client, database, accountId, keys }: World): Fixtures {
  let counter = 0
  /** Of the body of operations that take one. */
  let newestAudience: string | null = null
  let newestTopic: string | null = null
  const newEmail = () => `person-${++counter}@example.com`

  // Under capture such a name is verified without DNS.
  const newDomain = () => `shop-${++counter}.test`

  async function webhook(): Promise<string> {
    const { id } = await client.succeed(contract.webhooks.create, {
      body: { url: deadUrl, events: ['contact.created'] },
    })
    return id
  }

  async function subscriber(): Promise<string> {
    const { id } = await client.succeed(contract.subscribers.create, { body: { email: newEmail() } })
    return id
  }

  async function audience(): Promise<string> {
    const { id } = await client.succeed(contract.audiences.create, { body: { name: `List ${++counter}` } })
    return id
  }

  async function segment(): Promise<string> {
    const conditions = { type: 'field', field: 'emailDomain', operator: 'is', value: 'example.com' } as const
    const body = { audienceId: await audience(), name: `Segment ${++counter}`, conditions }
    return (await client.succeed(contract.segments.create, { body })).id
  }

  /** Few at a time, since an account can have no more than 200. */
  async function topic(): Promise<string> {
    const { data } = await client.succeed(contract.topics.list, { query: { limit: 100 } })
    if (data.length > 50) {
      for (const { id } of data) await client.succeed(contract.topics.delete, { params: { id } })
    }
    const body = { name: `Topic ${++counter}`, default: 'opt_out' as const }
    return (await client.succeed(contract.topics.create, { body })).id
  }

  async function newTemplate(): Promise<string> {
    const body = { name: `Template ${++counter}`, subject: 'Hello {{ name }}', text: 'Hello {{ name }}' }
    return (await client.succeed(contract.templates.create, { body })).id
  }

  async function domain(): Promise<string> {
    const { id } = await client.succeed(contract.domains.create, { body: { name: newDomain() } })
    return id
  }

  /** Waits for its time. */
  async function email(): Promise<string> {
    const { id } = await client.as(keys.test).succeed(contract.emails.send, {
      body: {
        from: 'hello@example.com',
        to: 'delivered@simulator.test',
        subject: `Email ${++counter}`,
        text: 'Hello',
        scheduledAt: tomorrow(),
      },
    })
    return id
  }

  /** In the status that the operation needs. */
  async function campaign(template: string): Promise<string> {
    const audienceId = await audience()
    const { id } = await client.as(keys.test).succeed(contract.campaigns.create, {
      body: {
        name: `Campaign ${++counter}`,
        audienceId,
        from: 'hello@example.com',
        subject: 'Hello',
        content: { text: 'Hello' },
        abTest: testedByHand,
      },
    })
    const before = campaignBefore[template.split('/')[4] ?? '']
    if (before !== undefined) await database.db.updateTable('campaigns').set(before).where('id', '=', id).execute()
    return id
  }

  /** An email that has ended, with a file: a test key sends nothing. */
  async function endedEmail(): Promise<PathParameters> {
    const { id } = await client.as(keys.test).succeed(contract.emails.send, {
      body: {
        from: 'hello@example.com',
        to: newEmail(),
        subject: `Email ${++counter}`,
        text: 'Hello',
        attachments: [{ filename: 'terms.pdf', content: 'JVBERi0xLjcK' }],
      },
    })
    return { id, index: '0' }
  }

  async function suppression(): Promise<string> {
    const { address } = await client.succeed(contract.suppressions.create, { body: { address: newEmail() } })
    return address
  }

  async function apiKey(): Promise<string> {
    const body = { name: `Key ${++counter}`, permissions: ['events:read' as const] }
    return (await client.succeed(contract.apiKeys.create, { body })).id
  }

  async function portalSession(): Promise<string> {
    return (await client.succeed(contract.portalSessions.create, { body: { customer: '42' } })).id
  }

  async function event(): Promise<string> {
    await subscriber()
    const { data } = await client.succeed(contract.events.list, { query: { limit: 1 } })
    return String(first(data).id)
  }

  async function delivery(): Promise<PathParameters> {
    const id = await webhook()
    await client.succeed(contract.webhooks.test, { params: { id }, body: {} })
    const { data } = await client.succeed(contract.deliveries.list, { params: { id }, query: {} })
    return { id, deliveryId: first(data).id }
  }

  async function recovery(): Promise<PathParameters> {
    const id = await webhook()
    const body = { since: '2026-03-01T00:00:00Z' }
    const { id: recoveryId } = await client.succeed(contract.deliveries.recover, { params: { id }, body })
    return { id, recoveryId }
  }

  async function contact(): Promise<PathParameters> {
    const audienceId = await audience()
    const added = await client.succeed(contract.contacts.add, { params: { audienceId }, body: { email: newEmail() } })
    return { audienceId, subscriberId: added.subscriberId }
  }

  /** Was asked to confirm long ago. */
  async function pendingContact(): Promise<PathParameters> {
    const testing = client.as(keys.test)
    const doubleOptIn = { from: 'news@example.com' }
    const { id: audienceId } = await testing.succeed(contract.audiences.create, {
      body: { name: 'Asking', doubleOptIn },
    })
    const added = await testing.succeed(contract.contacts.add, { params: { audienceId }, body: { email: newEmail() } })
    const before = { confirmation_sent_at: new Date('2026-03-01T00:00:00Z') }
    await database.db.updateTable('contacts').set(before).where('audience_id', '=', audienceId).execute()
    return { audienceId, subscriberId: added.subscriberId }
  }

  /** An audience to import into. An account can have few imports that have not ended, so others are canceled. */
  async function audienceForImport(): Promise<string> {
    const { data } = await client.succeed(contract.imports.list, { query: { limit: 20 } })
    for (const { id, status } of data) {
      if (status === 'waiting') await client.succeed(contract.imports.cancel, { params: { id }, body: {} })
    }
    return audience()
  }

  async function importOf(): Promise<string> {
    const path = pathOf(operationById('createImport'), { audienceId: await audienceForImport() })
    const { body } = await client.send('POST', path, csvFile)
    return String(Object(body).id)
  }

  /** Few at a time, since an account can have no more than 100. */
  async function property(): Promise<PathParameters> {
    const { data } = await client.succeed(contract.contactProperties.list, {})
    if (data.length > 50) {
      for (const { key } of data) await client.succeed(contract.contactProperties.delete, { params: { key } })
    }
    const body = { key: `property_${++counter}`, type: 'string' as const }
    return { key: (await client.succeed(contract.contactProperties.create, { body })).key }
  }

  return {
    newEmail,
    keyFor: ({ template }) => (/^\/v1\/(emails|campaigns)|\/confirmation$/.test(template) ? keys.test : undefined),
    async parametersFor({ id, template }) {
      if (id === 'resendEmail' || id === 'getEmailAttachment') return endedEmail()
      if (id === 'getCapturedMessageAttachment') {
        return { id: await insertCapturedMessage(database, { accountId, content: messageWithFile }), index: '0' }
      }
      if (template.includes('{deliveryId}')) return delivery()
      if (template.includes('{recoveryId}')) return recovery()
      if (id === 'sendContactConfirmation') return pendingContact()
      if (template.includes('{subscriberId}')) return contact()
      if (template.includes('{key}')) return property()
      if (template.includes('{address}')) return { address: await suppression() }
      if (id === 'createImport') return { audienceId: await audienceForImport() }
      if (template.includes('{audienceId}')) return { audienceId: await audience() }
      if (takesAudience.includes(id)) newestAudience = await audience()
      if (id === 'updateSubscriberTopics') newestTopic = await topic()
      if (!template.includes('{')) return {}
      const make = {
        webhooks: webhook,
        'portal-sessions': portalSession,
        events: event,
        subscribers: subscriber,
        audiences: audience,
        segments: segment,
        topics: topic,
        emails: email,
        imports: importOf,
        templates: newTemplate,
        campaigns: () => campaign(template),
        domains: domain,
        'api-keys': apiKey,
        'captured-messages': () => insertCapturedMessage(database, { accountId }),
        'inbound-messages': () => insertInboundMessage(database, { accountId }),
        'request-logs': () => insertRequestLog(database, { accountId }),
      }
      const resource = template.split('/')[2] as keyof typeof make
      return { id: await make[resource]() }
    },
    bodyFor({ id, body }) {
      if (body === null) return undefined
      if (id === 'createDomain') return { name: newDomain() }
      if (id === 'createContactProperty') return { key: `property_${++counter}`, type: 'number', fallback: 0 }
      const { examples = [{}] } = dereference<SchemaObject>(body.schema)
      const example = Object(examples[0])
      return {
        ...example,
        ...(takesAudience.includes(id) && newestAudience !== null && { audienceId: newestAudience }),
        ...('topics' in example && newestTopic !== null && { topics: [{ topicId: newestTopic, subscribed: false }] }),
        ...('email' in example && { email: newEmail() }),
        ...('contacts' in example && { contacts: [{ email: newEmail() }] }),
        ...('address' in example && { address: newEmail() }),
        ...('scheduledAt' in example && { scheduledAt: tomorrow() }),
      }
    },
  }
}

/** Operations whose body names an audience that must be there. */
const takesAudience = ['createCampaign', 'createSegment', 'previewSegment']
/** An A/B test whose winner is chosen by hand. */
export const testedByHand = { share: 50, winnerBy: 'manual' as const, variants: [{ name: 'A' }, { name: 'B' }] }

/** The state of a campaign with this A/B test before an operation, if it is not a draft. */
export const campaignBefore: Readonly<Record<string, { status: CampaignStatus; ab_tested_at?: Date }>> = {
  pause: { status: 'sending' },
  resume: { status: 'paused' },
  cancel: { status: 'scheduled' },
  winner: { status: 'sending', ab_tested_at: new Date() },
}

/** A time an email may be scheduled for. */
export function tomorrow(): string {
  return new Date(Date.now() + 24 * 3_600_000).toISOString()
}

/** A file of contacts, as it is sent. */
export const csvFile = { raw: 'email\nada@example.com\n', headers: { 'content-type': 'text/csv' } }

/** The file that an operation takes. Nothing for one that takes none. */
export function fileOf({ takesCsv }: Operation): Partial<typeof csvFile> {
  return takesCsv ? csvFile : {}
}

/** Identifiers of the right form that name nothing. */
export function unknownParameters({ parameters }: Operation): PathParameters {
  const inQuery = parameters.query.filter(({ name, required }) => required && name === 'audienceId')
  return Object.fromEntries(
    [...parameters.path, ...inQuery].map(({ name, schema }) => [
      name,
      String(dereference<SchemaObject>(schema).examples?.[0]),
    ]),
  )
}

/** The path of an operation with these parameters. The audience of an import stands in the query. */
export function pathOf({ template, takesCsv }: Operation, parameters: PathParameters): string {
  const query = takesCsv && parameters.audienceId !== undefined ? `?audienceId=${parameters.audienceId}` : ''
  const path = template.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(parameters[name] ?? ''))
  return path + query
}

function first<T>(items: readonly T[]): T {
  const [item] = items
  if (item === undefined) throw new Error('the list is empty')
  return item
}
