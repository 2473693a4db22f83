import { afterAll, beforeAll, expect, test } from 'vitest'
import { contract } from '../../contract/index.ts'
import { createFixtures, deadUrl, type Fixtures, pathOf, unknownParameters } from '../support/fixtures.ts'
import { pageHeaders } from '../support/people.ts'
import { type Customer, openPortal } from '../support/portal.ts'
import { type Operation, operationById, operations } from '../support/published-spec.ts'
import { startTestService, type TestService } from '../support/service.ts'

/*
 * Each route of the published spec × a portal session: those of the portal, and no other; and on these, the webhooks of
 * its customer, and no others.
 */

/** The operations that a customer may call. A new operation of the portal has to be judged here. */
const ofPortal = [
  'createWebhook',
  'deleteWebhook',
  'getDelivery',
  'getDeliveryEvent',
  'getPortalSession',
  'getRecovery',
  'getWebhook',
  'listDeliveries',
  'listEventTypes',
  'listRecoveries',
  'listWebhooks',
  'recoverDeliveries',
  'resendDelivery',
  'rotateWebhookSecret',
  'testWebhook',
  'updateWebhook',
]
const named = (list: readonly Operation[]) => list.map((operation) => [operation.id, operation] as const)
/** Routes without a caller are left out: every client may call them. */
const closed = operations.filter(({ caller }) => caller !== 'none')
const inPortal = closed.filter(({ id }) => ofPortal.includes(id))
const onOne = inPortal.filter(({ parameters }) => parameters.path.length > 0)

let service: TestService
let fixtures: Fixtures
let customer: Customer

beforeAll(async () => {
  service = await startTestService({ roles: { worker: false } })
  fixtures = createFixtures(service)
  customer = await openPortal(service)
})
afterAll(() => service.stop())

const codeOf = (answer: { body: unknown }) => Object(answer.body).error?.code

/** Calls an operation in the portal, on what is not there unless `path` says otherwise. */
function call(operation: Operation, path = pathOf(operation, unknownParameters(operation))) {
  const json = operation.body === null ? {} : { json: fixtures.bodyFor(operation) }
  return customer.send(operation.method, path, json)
}

/** Gives the webhook to a customer. */
async function give(id: string, to: string): Promise<void> {
  await service.client.succeed(contract.webhooks.update, { params: { id }, body: { metadata: { customer: to } } })
}

test.each(named(closed.filter(({ id }) => !ofPortal.includes(id))))(
  '%s is no part of the portal, neither with its token nor with its cookie',
  async (_, operation) => {
    const path = pathOf(operation, unknownParameters(operation))
    const json = operation.body === null ? {} : { json: fixtures.bodyFor(operation) }
    const page = { ...pageHeaders(service.url), cookie: customer.cookie }
    const named = { ...page, 'x-postern-portal': customer.sessionId }
    const asUser = { ...page, 'x-postern-account': service.accountId }
    const answers = [
      await call(operation),
      ...(await Promise.all(
        [named, asUser].map((headers) => service.client.send(operation.method, path, { ...json, key: null, headers })),
      )),
    ]
    for (const answer of answers) expect([answer.status, codeOf(answer)]).toEqual([401, 'authentication_error'])
  },
)

test.each(named(inPortal))('%s refuses a session that has ended', async (_, operation) => {
  const ended = await openPortal(service)
  await service.client.succeed(contract.portalSessions.delete, { params: { id: ended.sessionId } })
  const answer = await ended.send(operation.method, pathOf(operation, unknownParameters(operation)))
  expect([answer.status, codeOf(answer)]).toEqual([401, 'authentication_error'])
})

test.each(named(onOne))(
  'a webhook of the customer, and of others: %s finds what is on the former alone',
  async (_, operation) => {
    // One name begins like that of the customer.
    for (const [owner, isTheirs] of [
      ['43', false],
      ['421', false],
      ['42', true],
    ] as const) {
      const parameters = await fixtures.parametersFor(operation)
      await give(parameters.id ?? '', owner)
      const answer = await call(operation, pathOf(operation, parameters))
      if (isTheirs) expect(answer.status).toBeLessThan(300)
      else expect([answer.status, codeOf(answer)]).toEqual([404, 'not_found'])
    }
  },
)

test.each(named(onOne))(
  'a webhook without a customer, and of another account: %s finds nothing',
  async (_, operation) => {
    const own = createFixtures(service)
    const parameters = await own.parametersFor(operation)
    expect(codeOf(await call(operation, pathOf(operation, parameters)))).toBe('not_found')
    const theirs = createFixtures({ ...service, client: service.client.as(service.keys.other) })
    const foreign = await theirs.parametersFor(operation)
    const { db } = service.database
    await db
      .updateTable('webhooks')
      .set({ metadata: '{"customer":"42"}' })
      .where('id', '=', foreign.id ?? '')
      .execute()
    expect(codeOf(await call(operation, pathOf(operation, foreign)))).toBe('not_found')
  },
)

test.each(named(onOne))('a webhook of the same customer in the other mode: %s finds nothing', async (_, operation) => {
  const inTest = createFixtures({ ...service, client: service.client.as(service.keys.test) })
  const parameters = await inTest.parametersFor(operation)
  const { db } = service.database
  await db
    .updateTable('webhooks')
    .set({ metadata: '{"customer":"42"}' })
    .where('id', '=', parameters.id ?? '')
    .execute()
  expect(codeOf(await call(operation, pathOf(operation, parameters)))).toBe('not_found')
})

test('a delivery or recovery of another webhook is not there on a webhook of the customer', async () => {
  const mine = await fixtures.parametersFor(operationById('getDelivery'))
  await give(mine.id ?? '', '42')
  for (const id of ['getDelivery', 'getDeliveryEvent', 'resendDelivery', 'getRecovery']) {
    const operation = operationById(id)
    const theirs = await fixtures.parametersFor(operation)
    const path = pathOf(operation, { ...theirs, id: mine.id ?? '' })
    expect(codeOf(await call(operation, path)), id).toBe('not_found')
  }
})

test('the list shows the webhooks of the customer alone, page by page', async () => {
  const lists = await openPortal(service, { customer: 'lists' })
  const made: string[] = []
  for (const name of ['lists', 'other', 'lists', 'other', 'lists']) {
    const body = { url: deadUrl, events: ['contact.created' as const], metadata: { customer: name } }
    const { id } = await service.client.succeed(contract.webhooks.create, { body })
    if (name === 'lists') made.unshift(id)
  }
  const ids: string[] = []
  let cursor = ''
  do {
    const { body } = await lists.send('GET', `/v1/webhooks?limit=2${cursor}`)
    ids.push(...Object(body).data.map(({ id }: { id: string }) => id))
    cursor = Object(body).nextCursor === null ? '' : `&cursor=${Object(body).nextCursor}`
  } while (cursor !== '')
  expect(ids).toEqual(made)
  expect((await lists.send('GET', '/v1/webhooks?metadata[customer]=other')).status).toBe(422)
})
