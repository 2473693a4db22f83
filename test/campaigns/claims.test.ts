import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { claimCampaigns } from '../../server/campaigns/engine-queries.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { seedAccount } from '../support/emails.ts'
import { campaignRow } from '../support/worlds/campaign-of-emails.ts'

const at = new Date('2026-03-01T09:30:00.000Z')

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase()
})
beforeEach(() => database.db.deleteFrom('campaigns').execute())
afterAll(() => database.drop())

/** Adds campaigns that are due, each a second after the one before. Returns their account. */
async function addDue(count: number): Promise<string> {
  const accountId = await seedAccount(database.db, at)
  const rows = Array.from({ length: count }, (_, second) => ({
    ...campaignRow(accountId, at),
    due_at: new Date(at.getTime() + second * 1_000),
  }))
  await database.db.insertInto('campaigns').values(rows).execute()
  return accountId
}

/** Gives turns as a worker does, with campaigns that always go on. Returns how many each account and campaign had. */
async function giveTurns(rounds: number, inHand: number) {
  const [ofAccount, ofCampaign] = [new Map<string, number>(), new Map<string, number>()]
  let last = ''
  for (let round = 0; round < rounds; round++) {
    for (const { account_id, id } of await claimCampaigns(database.db, inHand, 30_000, { after: last })) {
      ofAccount.set(account_id, (ofAccount.get(account_id) ?? 0) + 1)
      ofCampaign.set(id, (ofCampaign.get(id) ?? 0) + 1)
      last = account_id
      const dueAt = new Date()
      await database.db.updateTable('campaigns').set({ due_at: dueAt }).where('id', '=', id).execute()
    }
  }
  return { ofAccount, ofCampaign }
}

test('an account with 50 campaigns gets as many turns as one with a single campaign', async () => {
  const accounts = [await addDue(50), await addDue(1), await addDue(50), await addDue(50), await addDue(1)]
  // Fewer in hand than there are accounts, so that they compete.
  const { ofAccount } = await giveTurns(50, 2)
  expect(Object.fromEntries(ofAccount)).toEqual(Object.fromEntries(accounts.map((id) => [id, 20])))
})

test('the campaigns of an account take turns', async () => {
  await addDue(5)
  const { ofCampaign } = await giveTurns(20, 10)
  expect([...ofCampaign.values()]).toEqual([4, 4, 4, 4, 4])
})

test('what a transaction has locked is left out, and claimed after it', async () => {
  const [locked, free] = [await addDue(1), await addDue(1)]
  await database.db.transaction().execute(async (trx) => {
    await trx.selectFrom('campaigns').select('id').where('account_id', '=', locked).forNoKeyUpdate().execute()
    const claimed = await claimCampaigns(database.db, 10, 30_000)
    expect(claimed.map(({ account_id }) => account_id)).toEqual([free])
  })
  expect((await claimCampaigns(database.db, 10, 30_000)).map(({ account_id }) => account_id)).toEqual([locked])
})

test('accounts that are to wait are left out of a claim', async () => {
  const [waits, goesOn] = [await addDue(2), await addDue(2)]
  const claimed = await claimCampaigns(database.db, 10, 30_000, { without: [waits] })
  expect(claimed.map(({ account_id }) => account_id)).toEqual([goesOn])
})
