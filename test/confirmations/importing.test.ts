import { afterAll, beforeAll, expect, test } from 'vitest'
import type { CreateImport, Import } from '../../contract/imports.ts'
import { guardUsedTopic } from '../../server/campaigns/in-use.ts'
import { createImportService, type ImportService } from '../../server/imports/service.ts'
import { startImportWorker } from '../../server/imports/worker.ts'
import type { AuthoredScope } from '../../server/shared/scope.ts'
import { findWithoutTopic } from '../../server/topics/choices.ts'
import { createTopicService } from '../../server/topics/service.ts'
import { patienceMs } from '../support/patience.ts'
import { refusal } from '../support/worlds/audiences.ts'
import { createEmailWorld, type EmailWorld } from '../support/worlds/emails.ts'

/*
 * Imports into audiences with double opt-in: people are what the file or the import says they are.
 */

let world: EmailWorld
let imports: ImportService
const from = 'Shop <news@shop.test>'

beforeAll(async () => {
  world = await createEmailWorld()
  imports = createImportService({ clock: world.time.clock, audiences: world.audiences, wake: () => undefined })
})
afterAll(() => world.end())

async function newAudience(doubleOptIn: { from: string } | null = { from }): Promise<string> {
  return (await world.audiences.create(world.db, world.live, { name: 'Readers', doubleOptIn })).id
}

type Options = Omit<CreateImport, 'audienceId'> & { scope?: AuthoredScope }

async function upload(audienceId: string, file: string, { scope = world.live, ...options }: Options = {}) {
  async function* pieces() {
    yield Buffer.from(file)
  }
  return imports.create(world.db, scope, { audienceId, ...options }, pieces())
}

/** Has all imports read that wait. Returns one of them as it is then. */
async function run({ id }: Import): Promise<Import> {
  const { db, time, outbox, confirmations, live } = world
  const logger = { info: () => undefined, error: (error: unknown) => expect.fail(String(error)) }
  const worker = startImportWorker({ db, clock: time.clock, logger, outbox, confirmations, pollIntervalMs: 20 })
  try {
    return await expect
      .poll(() => imports.get(db, live, id), { timeout: patienceMs })
      .toMatchObject({ endedAt: expect.any(String) })
      .then(() => imports.get(db, live, id))
  } finally {
    await worker.stop()
  }
}

/** The status of each contact by address, and the addresses that were asked. */
async function outcomeOf(audienceId: string) {
  const { db, live, contacts } = world
  const { data } = await contacts.list(db, live.accountId, audienceId, { limit: 100 })
  const asked = data.filter(({ confirmationSentAt }) => confirmationSentAt !== null).map(({ email }) => email)
  return { statuses: Object.fromEntries(data.map(({ email, status }) => [email, status])), asked }
}

test('people are as the importer says: active by default, and asked when they are to be pending', async () => {
  const audienceId = await newAudience()
  await run(await upload(audienceId, 'email\nactive@example.org\n'))
  const file = 'email,status\nasked@example.org,\nunconfirmed@example.org,unconfirmed\n'
  expect(await run(await upload(audienceId, file, { status: 'pending' }))).toMatchObject({ created: 2, failed: 0 })
  // Its own export, where a row says what it is.
  expect(await run(await upload(audienceId, 'email,status\nfrom-export@example.org,pending\n'))).toMatchObject({
    created: 1,
  })
  const { statuses, asked } = await outcomeOf(audienceId)
  expect(statuses).toEqual({
    'active@example.org': 'active',
    'asked@example.org': 'pending',
    'unconfirmed@example.org': 'pending',
    'from-export@example.org': 'pending',
  })
  expect(asked.toSorted()).toEqual(['asked@example.org', 'from-export@example.org', 'unconfirmed@example.org'])
  let csv = ''
  for await (const piece of await world.contacts.exportCsv(world.db, world.account, audienceId)) csv += piece
  expect(csv).toContain('asked@example.org,,,pending,')
})

test('who is asked is subscribed to topics as others are, and gets nothing before they confirm', async () => {
  const { db, time, account, live } = world
  const topic = await createTopicService({ ...time, guardUsed: guardUsedTopic }).create(db, account, {
    name: 'News',
    default: 'opt_in',
  })
  const audienceId = await newAudience()
  const file = 'email\ntopic@example.org\n'
  await run(await upload(audienceId, file, { status: 'pending', topics: topic.id }))
  expect(await outcomeOf(audienceId)).toEqual({
    statuses: { 'topic@example.org': 'pending' },
    asked: ['topic@example.org'],
  })
  expect(await findWithoutTopic(db, account, { id: topic.id, addressKeys: ['topic@example.org'] })).toEqual(new Set())
  const email = { from, to: ['topic@example.org'], subject: 'Hi', text: 'Hi', audienceId, topicId: topic.id }
  const { id } = await world.emails.send(db, live, email)
  expect((await world.emails.get(db, live, id)).recipients).toMatchObject([{ status: 'suppressed' }])
})

test('nobody is pending where the audience asks nobody', async () => {
  const audienceId = await newAudience(null)
  expect(await refusal(upload(audienceId, 'email\na@example.org\n', { status: 'pending' }))).toBe('rule_violation')
  const file = 'email,status\npending@example.org,pending\nactive@example.org,active\n'
  expect(await run(await upload(audienceId, file))).toMatchObject({ created: 1, failed: 1 })
  expect((await outcomeOf(audienceId)).statuses).toEqual({ 'active@example.org': 'active' })
})

test('a test key imports nobody as active', async () => {
  const audienceId = await newAudience()
  const scope = world.test
  expect(await refusal(upload(audienceId, 'email\na@example.org\n', { scope }))).toBe('authentication_error')
})

test('an import that can ask nobody any more ends and says why', async () => {
  const { db, live, domains } = world
  const domain = await domains.create(db, live, { name: 'leaving.test' })
  const audienceId = await newAudience({ from: 'news@leaving.test' })
  const waiting = await upload(audienceId, 'email\nlate@example.org\n', { status: 'pending' })
  await domains.delete(db, live, domain.id)
  expect(await run(waiting)).toMatchObject({
    status: 'failed',
    failureReason: expect.stringContaining('not a sending domain of this account'),
  })
  expect((await outcomeOf(audienceId)).statuses).toEqual({})
})
