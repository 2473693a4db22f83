import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type EventTypeName, eventType, eventTypeNames, sharedEventTypes } from '../../contract/event-types.ts'
import { contract } from '../../contract/index.ts'
import { type Mode, modes } from '../../contract/mode.ts'
import { newId } from '../../server/shared/ids.ts'
import type { TestClient } from '../support/client.ts'
import {
  campaignBefore,
  createFixtures,
  deadUrl,
  type Fixtures,
  type PathParameters,
  pathOf,
  testedByHand,
  tomorrow,
} from '../support/fixtures.ts'
import { type Operation, operationById, keyOperations as operations } from '../support/published-spec.ts'
import { startReceiver } from '../support/receiver.ts'
import { insertRequestLog } from '../support/request-logs.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { insertCapturedMessage, insertInboundMessage, messageWithFile } from '../support/stored-messages.ts'
import { type Kind, kinds } from './mode-kinds.ts'
import { triesToReach } from './tries-to-reach.ts'

/*
 * A key of one mode sees and changes nothing of the other but the data that both share.
 */

const otherOf: Record<Mode, Mode> = { test: 'live', live: 'test' }

function ofKind(kind: Kind): Operation[] {
  return Object.keys(kinds)
    .filter((id) => kinds[id] === kind)
    .map(operationById)
}

test('every operation is judged', () => {
  expect(operations.map(({ id }) => id).toSorted()).toEqual(Object.keys(kinds).toSorted())
})

test('everything both modes share about people is tried with a test key', () => {
  // Domains, properties, templates, segments and topics do not decide who may be written to.
  const others = ['createDomain', 'createContactProperty', 'updateContactProperty', 'deleteContactProperty']
  others.push('createTemplate', 'updateTemplate', 'renderTemplate')
  others.push('createSegment', 'previewSegment', 'updateSegment', 'deleteSegment', 'createTopic', 'updateTopic')
  const writing = ofKind('shared').filter(({ method, id }) => method !== 'GET' && !others.includes(id))
  const tried = triesToReach('everything').map(([, { operationId }]) => operationId)
  expect(new Set(tried)).toEqual(new Set(writing.map(({ id }) => id)))
})

describe('with a key of each mode', () => {
  let service: TestService
  let fixtures: Fixtures
  let from: string

  beforeAll(async () => {
    service = await startTestService({ roles: { worker: false }, publicUrl: 'https://mail.example.com' })
    fixtures = createFixtures(service)
    const { name } = await service.client.succeed(contract.domains.create, { body: { name: 'modes.test' } })
    from = `hello@${name}`
  })
  afterAll(() => service.stop())

  const clientOf = (mode: Mode): TestClient => service.client.as(service.keys[mode])

  async function webhook(mode: Mode): Promise<PathParameters> {
    const body = { url: deadUrl, events: ['email.sent' as const] }
    return { id: (await clientOf(mode).succeed(contract.webhooks.create, { body })).id }
  }

  async function portalSession(mode: Mode): Promise<PathParameters> {
    return { id: (await clientOf(mode).succeed(contract.portalSessions.create, { body: { customer: '42' } })).id }
  }

  async function importOf(mode: Mode): Promise<PathParameters> {
    const own = createFixtures({ ...service, client: clientOf(mode) })
    return own.parametersFor(operationById('getImport'))
  }

  async function apiKey(mode: Mode): Promise<PathParameters> {
    const body = { name: 'A key', permissions: ['events:read' as const] }
    return { id: (await clientOf(mode).succeed(contract.apiKeys.create, { body })).id }
  }

  async function email(mode: Mode): Promise<PathParameters> {
    const body = { from, to: 'ada@example.org', subject: 'Hello', text: 'Hello', scheduledAt: tomorrow() }
    const to = mode === 'test' ? 'delivered@simulator.test' : body.to
    return { id: (await clientOf(mode).succeed(contract.emails.send, { body: { ...body, to } })).id }
  }

  async function campaign(mode: Mode, template: string): Promise<PathParameters> {
    const { id: audienceId } = await service.client.succeed(contract.audiences.create, { body: { name: 'News' } })
    const body = { name: 'News', audienceId, from, subject: 'Hello', content: { text: 'Hello' }, abTest: testedByHand }
    const { id } = await clientOf(mode).succeed(contract.campaigns.create, { body })
    const before = campaignBefore[template.split('/')[4] ?? '']
    const { db } = service.database
    if (before !== undefined) await db.updateTable('campaigns').set(before).where('id', '=', id).execute()
    return { id }
  }

  /** An email with a file, of which nothing is left to be done. */
  async function endedEmail(mode: Mode): Promise<PathParameters> {
    const attachments = [{ filename: 'terms.pdf', content: 'JVBERi0xLjcK' }]
    const body = { from, to: 'delivered@simulator.test', subject: 'Hello', text: 'Hello', attachments }
    const { id } = await clientOf(mode).succeed(contract.emails.send, { body })
    const { db } = service.database
    await db.updateTable('emails').set({ completed_at: new Date() }).where('id', '=', id).execute()
    return { id, index: '0' }
  }

  async function event(mode: Mode, type: EventTypeName = 'email.sent'): Promise<PathParameters> {
    const id = newId('event', new Date())
    const body = JSON.stringify({ ...eventType(type).exampleBody, id })
    const row = { id, account_id: service.accountId, mode, type, body, created_at: new Date(), traceparent: null }
    const { db } = service.database
    await db.insertInto('events').values(row).execute()
    await db.insertInto('outbox_rows').values({ event_id: id, account_id: service.accountId, mode, type }).execute()
    return { id }
  }

  async function message(mode: Mode, kind: 'captured' | 'inbound'): Promise<PathParameters> {
    const insert = kind === 'captured' ? insertCapturedMessage : insertInboundMessage
    return { id: await insert(service.database, { accountId: service.accountId, mode }) }
  }

  /** An object of a mode that the operation is about. */
  async function make(mode: Mode, { id, template }: Operation): Promise<PathParameters> {
    if (id === 'resendEmail' || id === 'getEmailAttachment') return endedEmail(mode)
    const [, , resource = ''] = template.split('/')
    if (id === 'getCapturedMessageAttachment') {
      const row = { accountId: service.accountId, mode, content: messageWithFile }
      return { id: await insertCapturedMessage(service.database, row), index: '0' }
    }
    if (template.includes('{deliveryId}')) {
      const params = { id: (await webhook(mode)).id as string }
      await clientOf(mode).succeed(contract.webhooks.test, { params, body: {} })
      const { data } = await clientOf(mode).succeed(contract.deliveries.list, { params, query: {} })
      return { ...params, deliveryId: data[0]?.id ?? '' }
    }
    if (template.includes('{recoveryId}')) {
      const params = { id: (await webhook(mode)).id as string }
      const body = { since: '2026-01-01T00:00:00Z' }
      const recovery = await clientOf(mode).succeed(contract.deliveries.recover, { params, body })
      return { ...params, recoveryId: recovery.id }
    }
    if (resource === 'imports') return importOf(mode)
    if (resource === 'webhooks') return webhook(mode)
    if (resource === 'portal-sessions') return portalSession(mode)
    if (resource === 'api-keys') return apiKey(mode)
    if (resource === 'emails') return email(mode)
    if (resource === 'campaigns') return campaign(mode, template)
    if (resource === 'events') return event(mode)
    if (resource === 'request-logs') {
      return { id: await insertRequestLog(service.database, { accountId: service.accountId, mode }) }
    }
    return message(mode, resource === 'captured-messages' ? 'captured' : 'inbound')
  }

  const bodies: Record<string, unknown> = {
    updateWebhook: { url: 'http://127.0.0.1:9/taken-over' },
    recoverDeliveries: { since: '2026-01-01T00:00:00Z' },
    updateEmail: { scheduledAt: tomorrow() },
    updateCampaign: { name: 'Taken over' },
    testCampaign: { to: ['delivered@simulator.test'] },
    chooseCampaignWinner: { variant: 'A' },
  }

  /** Everything there is of what has a mode, as the database has it. */
  async function everything(): Promise<unknown> {
    const { db } = service.database
    const tables = [
      'webhooks',
      'portal_sessions',
      'imports',
      'emails',
      'campaigns',
      'events',
      'deliveries',
      'webhook_recoveries',
      'captured_messages',
    ] as const
    // Without `last_used_at`, which is written behind the requests.
    const keys = db.selectFrom('api_keys').select(['id', 'revoked_at']).orderBy('id').execute()
    return Promise.all([keys, ...tables.map((table) => db.selectFrom(table).selectAll().orderBy('id').execute())])
  }

  describe.each(modes.map((mode) => [mode]))('an object of %s keys', (mode) => {
    test.each(ofKind('own').map((operation) => [operation.id, operation] as const))(
      'an object does not exist for %s with a key of the other mode',
      async (id, operation) => {
        const parameters = await make(mode, operation)
        const before = await everything()
        const path = pathOf(operation, parameters)
        const json = operation.body === null ? undefined : (bodies[id] ?? {})
        const options = json === undefined ? {} : { json }
        const answer = await clientOf(otherOf[mode]).send(operation.method, path, options)
        expect(answer).toMatchObject({ status: 404, body: { error: { code: 'not_found' } } })
        expect(await everything()).toEqual(before)
        expect((await clientOf(mode).send(operation.method, path, options)).status).toBeLessThan(300)
      },
    )

    test.each(ofKind('list').map((operation) => [operation.id, operation] as const))(
      'an object is in %s of its own mode alone',
      async (_, operation) => {
        const { id } = await make(mode, operation)
        const idsFor = async (key: Mode) => {
          const { body } = await clientOf(key).send('GET', `${operation.template}?limit=100`)
          return (Object(body).data as { id: string; mode: Mode }[]).map((item) => item.id)
        }
        expect(await idsFor(mode)).toContain(id)
        expect(await idsFor(otherOf[mode])).not.toContain(id)
      },
    )
  })

  test.each(ofKind('clears').map((operation) => [operation.id, operation] as const))(
    '%s deletes what is of its own mode alone',
    async (_, operation) => {
      const ids = await Promise.all(modes.map((mode) => message(mode, 'captured')))
      expect((await clientOf('test').send(operation.method, operation.template)).status).toBe(204)
      const statuses = modes.map(async (mode, index) => {
        const path = `${operation.template}/${ids[index]?.id}`
        return [mode, (await clientOf(mode).send('GET', path)).status]
      })
      expect(Object.fromEntries(await Promise.all(statuses))).toEqual({ test: 404, live: 200 })
    },
  )

  test.each(sharedEventTypes.map((type) => [type]))(
    'an event of what both share, %s, is shown to both, with its mode',
    async (type) => {
      for (const mode of modes) {
        const { id = '' } = await event(mode, type)
        for (const key of modes) {
          expect((await clientOf(key).send('GET', `/v1/events/${id}`)).body).toMatchObject({ id, mode })
        }
      }
    },
  )

  test('a key is shown no emails of the other mode when it asks for them', async () => {
    await email('live')
    expect(await clientOf('test').succeed(contract.emails.list, { query: { mode: 'live' } })).toMatchObject({
      data: [],
    })
  })

  test.each(ofKind('live').map((operation) => [operation.id, operation] as const))(
    '%s needs a live key, which is said before anything is read',
    async (_, operation) => {
      const path = pathOf(operation, await fixtures.parametersFor(operation))
      const raw = operation.body === null ? {} : { raw: '{', headers: { 'content-type': 'application/json' } }
      const answer = await clientOf('test').send(operation.method, path, raw)
      expect(answer).toMatchObject({
        status: 401,
        body: { error: { code: 'authentication_error', message: expect.stringContaining('live key') } },
      })
    },
  )

  describe.each([['an audience'], ['everything']] as const)('a person who unsubscribed from %s', (unsubscribedFrom) => {
    type Person = { email: string; audienceId: string; subscriberId: string }

    async function unsubscribed(): Promise<Person> {
      const live = clientOf('live')
      const email = fixtures.newEmail()
      const { id: audienceId } = await live.succeed(contract.audiences.create, { body: { name: 'News' } })
      const { subscriberId } = await live.succeed(contract.contacts.add, { params: { audienceId }, body: { email } })
      if (unsubscribedFrom === 'everything') {
        await live.succeed(contract.subscribers.unsubscribe, { params: { id: subscriberId }, body: {} })
      } else {
        const params = { audienceId, subscriberId }
        await live.succeed(contract.contacts.update, { params, body: { status: 'unsubscribed' } })
      }
      return { email, audienceId, subscriberId }
    }

    /** The operation about the person, or about their audience. */
    function tryIt(mode: Mode, id: string, person: Person, json: unknown) {
      const operation = operationById(id)
      const { audienceId, subscriberId } = person
      const isOfAudience = operation.template.startsWith('/v1/audiences/{id}')
      const path = pathOf(operation, { audienceId, subscriberId, id: isOfAudience ? audienceId : subscriberId })
      return clientOf(mode).send(operation.method, path, json === undefined ? {} : { json })
    }

    test.each(triesToReach(unsubscribedFrom))(
      'a person who unsubscribed is not written to because a test key tries: %s',
      async (name, attempt) => {
        const person = await unsubscribed()
        const body = attempt.body?.(person)
        const answer = await tryIt('test', attempt.operationId, person, body)
        const refused = {
          status: 401,
          body: { error: { code: 'authentication_error', message: expect.stringContaining('use a live key') } },
        }
        if (attempt.status === 401) expect(answer).toMatchObject(refused)
        else expect(answer.status, name).toBe(attempt.status)
        const { db } = service.database
        const hers = await db
          .selectFrom('events')
          .select('type')
          .where('body', 'like', `%${person.subscriberId}%`)
          .execute()
        // Whatever it did, an address that is added anew is no way round either.
        await tryIt('test', 'createSubscriber', person, { email: person.email })
        await tryIt('test', 'addContact', person, { email: person.email })
        const { email: to, audienceId } = person
        const newsletter = { from, to, audienceId, subject: 'News', html: '<p>News</p>' }
        expect(await clientOf('live').succeed(contract.emails.send, { body: newsletter })).toMatchObject({
          status: 'suppressed',
        })
        if (attempt.status !== 401) return
        expect(hers.map(({ type }) => type)).not.toContain('contact.deleted')
        expect((await tryIt('live', attempt.operationId, person, body)).status).toBeLessThan(300)
      },
    )
  })

  test('an address that only a link has unsubscribed is not made active again by a test key', async () => {
    const email = fixtures.newEmail()
    const emailId = newId('email', new Date())
    const { id } = await clientOf('live').succeed(contract.subscribers.create, { body: { email } })
    const { db } = service.database
    const row = {
      id: newId('suppression', new Date()),
      account_id: service.accountId,
      address: email,
      address_key: email,
    }
    const by = { reason: 'unsubscribe', source: 'unsubscribe_link', email_id: emailId, created_at: new Date() } as const
    await db
      .insertInto('suppressions')
      .values({ ...row, ...by })
      .execute()
    const path = `/v1/subscribers/${id}`
    expect(await clientOf('test').send('PATCH', path, { json: { status: 'active' } })).toMatchObject({ status: 401 })
    expect(await clientOf('live').send('PATCH', path, { json: { status: 'active' } })).toMatchObject({ status: 200 })
  })

  test('a test key does with people who unsubscribed from nothing what a live key does', async () => {
    const tried = clientOf('test')
    const email = fixtures.newEmail()
    const { id: audienceId } = await tried.succeed(contract.audiences.create, { body: { name: 'News' } })
    const { subscriberId } = await tried.succeed(contract.contacts.add, { params: { audienceId }, body: { email } })
    const params = { audienceId, subscriberId }
    const person = { params: { id: subscriberId } }
    await tried.succeed(contract.subscribers.update, { ...person, body: { email: fixtures.newEmail() } })
    await tried.succeed(contract.contacts.remove, { params })
    await tried.succeed(contract.subscribers.delete, person)
    await tried.succeed(contract.audiences.delete, { params: { id: audienceId } })
  })
})

test('what the simulator plays for a test key reaches test webhooks alone; what both share reaches both, marked', async () => {
  await using service = await startTestService()
  await using receiver = await startReceiver()
  for (const mode of modes) {
    const body = { url: `${receiver.url}?${mode}`, events: [...eventTypeNames] }
    await service.client.as(service.keys[mode]).succeed(contract.webhooks.create, { body })
  }
  const tried = service.client.as(service.keys.test)
  await tried.succeed(contract.emails.send, {
    body: { from: 'a@example.com', to: 'bounced@simulator.test', subject: 'x', text: 'x' },
  })
  const arrived = () =>
    receiver.requests
      .map(
        ({ url, headers, body }) =>
          `${url.split('?')[1]} ${JSON.parse(body.toString()).type} ${headers['x-service-mode']}`,
      )
      .toSorted()
  await expect.poll(arrived).toEqual(['test email.bounced test'])
  await tried.succeed(contract.subscribers.create, { body: { email: 'tried@example.org' } })
  await service.client.succeed(contract.subscribers.create, { body: { email: 'real@example.org' } })
  await expect
    .poll(arrived)
    .toEqual([
      'live subscriber.added live',
      'live subscriber.added test',
      'test email.bounced test',
      'test subscriber.added live',
      'test subscriber.added test',
    ])
})
