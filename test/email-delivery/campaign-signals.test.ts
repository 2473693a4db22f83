import { once } from 'node:events'
import type { Updateable } from 'kysely'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import type { CampaignsTable } from '../../server/database/tables/campaigns.ts'
import { startCampaignSignals } from '../../server/email-delivery/campaign-signals.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { seedAccount } from '../support/emails.ts'
import { seedCampaign } from '../support/worlds/campaign-of-emails.ts'

const at = new Date('2026-03-01T09:30:00.000Z')
const later = new Date(Date.now() + 3_600_000)

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.drop())

/** Signals of a first attempt and of a retry of a campaign, and of another campaign. */
async function joinCampaigns() {
  const { db } = database
  const accountId = await seedAccount(db, at)
  const [id, otherId] = [await seedCampaign(db, accountId, at), await seedCampaign(db, accountId, at)]
  const stopping = new AbortController()
  const fail = (error: unknown) => {
    throw error
  }
  const signals = startCampaignSignals({ db, stopping: stopping.signal, onError: fail })
  onTestFinished(() => signals.stop())
  return {
    stopping,
    first: signals.join({ accountId, id }, 'first').signal,
    retry: signals.join({ accountId, id }, 'later').signal,
    other: signals.join({ accountId, id: otherId }, 'first').signal,
    change: (columns: Updateable<CampaignsTable>) =>
      db.updateTable('campaigns').set(columns).where('id', '=', id).execute(),
  }
}

test('a campaign whose window closes stops first attempts, and no retry', async () => {
  const { first, retry, other, change } = await joinCampaigns()
  await change({ waiting_for: 'send_window', waiting_until: later })
  if (!first.aborted) await once(first, 'abort')
  expect([retry.aborted, other.aborted]).toEqual([false, false])
  await change({ status: 'paused' })
  if (!retry.aborted) await once(retry, 'abort')
  expect(other.aborted).toBe(false)
})

test.each(['paused', 'canceled'] as const)('a campaign that is %s stops first attempts and retries', async (status) => {
  const { first, retry, other, change } = await joinCampaigns()
  await change({ status })
  await Promise.all([first, retry].map((signal) => signal.aborted || once(signal, 'abort')))
  expect(other.aborted).toBe(false)
})

test('a service that stops aborts the signals of all campaigns', async () => {
  const { stopping, first, retry, other } = await joinCampaigns()
  stopping.abort()
  expect([first, retry, other].map(({ aborted }) => aborted)).toEqual([true, true, true])
})
