import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { invalidBody, invalidQueryValues, valid } from '../support/arbitrary.ts'
import { queryOf, type SendOptions, type TestClient } from '../support/client.ts'
import { createFixtures, csvFile, type Fixtures, pathOf, tomorrow, unknownParameters } from '../support/fixtures.ts'
import { patienceMs } from '../support/patience.ts'
import { type Operation, keyOperations as operations } from '../support/published-spec.ts'
import { startTestService, type TestService } from '../support/service.ts'

/*
 * Requests made up from the published spec. The client fails on every answer the spec does not
 * declare; here a request that is right must be accepted, or refused only for the state of things,
 * and a request with one fault must be refused for it.
 */

/** The same requests in every run: a failure can be had again. */
const seed = 20_260_301
const numRuns = 15
/** Ends the search for a smaller counterexample before the test times out, so that the counterexample is reported. */
const untilTold = { interruptAfterTimeLimit: 1.5 * patienceMs, markInterruptAsFailure: true }

let service: TestService
let client: TestClient
let fixtures: Fixtures

beforeAll(async () => {
  // Without workers: what is made up here must not be sent anywhere.
  service = await startTestService({
    roles: { worker: false },
    maxEmailBodyBytes: 10_000_000,
  })
  client = service.client
  fixtures = createFixtures(service)
})
afterAll(() => service.stop())

const table = operations.map((operation) => [operation.id, operation] as const)

/** Refusals of a request that is right: of what is not there, contradicts it, or is not possible now. */
const refusalsByState = [404, 409, 422]

/** Cursors are opaque: one that is made up is refused. */
const opaque = ['cursor']

/** Stands in the path already where it is needed. */
const placed = ['audienceId']

function queries({ parameters }: Operation): fc.Arbitrary<Record<string, unknown>> {
  const known = parameters.query.filter(({ name }) => !opaque.includes(name) && !placed.includes(name))
  const record = fc.record(Object.fromEntries(known.map(({ name, schema }) => [name, valid(schema)])), {
    requiredKeys: [],
  })
  // A rule between two parameters, which their schemas cannot say: what comes after an event is read oldest first.
  return record.filter(({ after, order }) => after === undefined || order !== 'desc')
}

function bodies({ body }: Operation): fc.Arbitrary<unknown> {
  if (body === null) return fc.constant(undefined)
  const right = valid(body.schema).map(withinRules)
  return body.required ? right : fc.option(right, { nil: undefined })
}

/** Keeps the rules of emails that no schema can say: of several fields, of octets, of the present time. */
function withinRules(body: unknown): unknown {
  const { emails, to, cc, bcc, subject = 'Hello', template, scheduledAt, topicId, ...rest } = Object(body)
  if (emails !== undefined) return { emails: emails.map(withinRules) }
  const time = scheduledAt === undefined ? {} : { scheduledAt: tomorrow() }
  if (to === undefined || rest.from === undefined) return { ...Object(body), ...time }
  const few = (list: unknown) => (Array.isArray(list) ? list.slice(0, 16) : list)
  const copies = { ...(cc !== undefined && { cc: few(cc) }), ...(bcc !== undefined && { bcc: few(bcc) }) }
  const about = { ...(rest.audienceId !== undefined && topicId !== undefined && { topicId }) }
  const text = rest.html ?? rest.text ?? 'Hello'
  return { ...rest, ...about, ...time, ...copies, to: few(to), subject: [...subject].slice(0, 200).join(''), text }
}

/** Present with something in it, or not there at all. */
function json(operation: Operation, body: unknown): SendOptions {
  const key = fixtures.keyFor(operation)
  return {
    ...(operation.takesCsv && csvFile),
    ...(key === undefined ? {} : { key }),
    ...(body === undefined ? {} : { json: body }),
  }
}

test.each(table)('%s accepts requests that are right', async (_, operation) => {
  const places = fc.constantFrom('there', 'unknown')
  const property = fc.asyncProperty(places, queries(operation), bodies(operation), async (place, query, body) => {
    const parameters = place === 'there' ? await fixtures.parametersFor(operation) : unknownParameters(operation)
    const base = pathOf(operation, parameters)
    const path = base + (base.includes('?') ? queryOf(query).replace('?', '&') : queryOf(query))
    const { status, text } = await client.send(operation.method, path, json(operation, body))
    if (status >= 300 && !refusalsByState.includes(status)) expect.fail(`${path} ${JSON.stringify(body)}: ${text}`)
  })
  await fc.assert(property, { seed, numRuns, ...untilTold })
})

type Fault = { suffix?: string; options: SendOptions }

/** Requests with one fault each. */
function faults(operation: Operation): fc.Arbitrary<Fault> {
  const right = json(operation, fixtures.bodyFor(operation))
  const headers = { 'content-type': 'application/json' }
  const badQueries = operation.parameters.query.flatMap(({ name, schema }) => [
    `${name}=${name === 'limit' ? 1 : ''}&${name}=2`,
    ...invalidQueryValues(schema).map((value) => `${name}=${encodeURIComponent(value)}`),
  ])
  const inQuery = fc
    .constantFrom('unexpected=1', 'unexpected', '__proto__=1', 'constructor[prototype]=1', ...badQueries)
    .map((query): Fault => ({ suffix: `?${query}`, options: right }))
  if (operation.body === null) return inQuery
  const inBody = invalidBody(operation.body.schema).map((body): Fault => ({ options: json(operation, body) }))
  const inBytes = fc
    .constantFrom<string | Buffer>('{', '{"a":1,}', "{'a':1}", 'nul', '[1', '\u0000', Buffer.from([0x22, 0xff, 0x22]))
    .map((raw): Fault => ({ options: { raw, headers } }))
  return fc.oneof(inQuery, { weight: 3, arbitrary: inBody }, inBytes)
}

test.each(table)('%s refuses requests with one fault', async (_, operation) => {
  const path = pathOf(operation, await fixtures.parametersFor(operation))
  const property = fc.asyncProperty(faults(operation), async ({ suffix = '', options }) => {
    const { status, text } = await client.send(operation.method, path + suffix, options)
    if (status !== 400) expect.fail(`${path}${suffix} ${JSON.stringify(options)} answered ${status}: ${text}`)
  })
  await fc.assert(property, { seed, numRuns: 2 * numRuns, ...untilTold })
})

const named = table.filter(([, { parameters }]) => parameters.path.length > 0)

test.each(named)('%s finds nothing by identifiers that are none', async (_, operation) => {
  const text = fc.oneof(fc.string({ minLength: 1 }), fc.string({ minLength: 1, unit: 'grapheme' }))
  // A path cannot hold these as a segment: they are steps in it.
  const segment = text.filter((value) => value !== '.' && value !== '..')
  const property = fc.asyncProperty(segment, async (id) => {
    const parameters = Object.fromEntries(operation.parameters.path.map(({ name }) => [name, id]))
    const { status } = await client.send(
      operation.method,
      pathOf(operation, parameters),
      json(operation, fixtures.bodyFor(operation)),
    )
    expect(status).toBe(404)
  })
  await fc.assert(property, { seed, numRuns, ...untilTold })
})
