import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { untilSomebodyWaits } from '../support/locks.ts'
import { refusal } from '../support/worlds/audiences.ts'
import { createEmailWorld, type EmailWorld, good } from '../support/worlds/emails.ts'

let world: EmailWorld

beforeAll(async () => {
  world = await createEmailWorld()
})
afterAll(() => world.end())

test('an email that is deleted while it is read is not found', async () => {
  const { db, live, emails } = world
  const { id } = await emails.send(db, live, good)
  const { reading } = await db.transaction().execute(async (trx) => {
    await sql`LOCK TABLE email_recipients IN ACCESS EXCLUSIVE MODE`.execute(trx)
    // The email itself is read, and then its recipients are waited for.
    const reading = refusal(emails.get(db, live, id))
    await untilSomebodyWaits(db)
    await trx.deleteFrom('emails').where('id', '=', id).execute()
    return { reading }
  })
  expect(await reading).toBe('not_found')
})
