import { sql } from 'kysely'
import { expect } from 'vitest'
import type { Db } from '../../../server/database/connection.ts'
import { newId } from '../../../server/shared/ids.ts'
import type { MailEngine } from '../mail-engine.ts'

export type Campaign = Awaited<ReturnType<typeof addCampaign>>

/** Returns the row of a campaign that is sending. */
export function campaignRow(accountId: string, at: Date) {
  return {
    id: newId('campaign', at),
    account_id: accountId,
    mode: 'live' as const,
    status: 'sending' as const,
    name: 'News',
    audience_id: newId('audience', at),
    sender: 'hello@example.test',
    reply_to: [],
    subject: 'News',
    track_opens: false,
    track_clicks: false,
    tags: [],
    metadata: '{}',
    late_start: 'send' as const,
    created_at: at,
    updated_at: at,
  }
}

/** Adds a campaign that is sending to an account. Returns its id. */
export async function seedCampaign(db: Db, accountId: string, at: Date): Promise<string> {
  const row = campaignRow(accountId, at)
  await db.insertInto('campaigns').values(row).execute()
  return row.id
}

/** Adds a campaign to the account of an engine. Its emails are stored by hand, not by a worker of campaigns. */
export async function addCampaign({ db, accountId, clock, send }: MailEngine) {
  const id = await seedCampaign(db, accountId, clock.now())
  return {
    id,
    /** Stores an email to each address. Returns their ids. */
    async send(addresses: readonly string[]): Promise<string[]> {
      const ids: string[] = []
      for (const address of addresses) ids.push(await send({ to: [address], campaignId: id }, 'bulk'))
      return ids
    },
    /** Pauses or resumes it. */
    async set(status: 'sending' | 'paused'): Promise<void> {
      await db.updateTable('campaigns').set({ status }).where('id', '=', id).execute()
    },
  }
}

/** Lets time pass, and waits until the worker has looked at all emails that are due then. */
export async function pass(engine: MailEngine, seconds: number): Promise<void> {
  await engine.advance(seconds)
  const due = async () => {
    const { rows } = await sql`
      SELECT id FROM pgboss.job
      WHERE name = 'emails' AND (state = 'active' OR state < 'active' AND start_after <= pgboss.job_now())
    `.execute(engine.db)
    return rows.length
  }
  await expect.poll(due).toBe(0)
}
