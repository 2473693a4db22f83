import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createReceiver } from '../../server/bounces/receive.ts'
import { recordFacts } from '../../server/email-delivery/record-facts.ts'
import { systemClock } from '../../server/lib/clock.ts'
import { addressKey } from '../../server/message/address.ts'
import { createMailTokens } from '../../server/message/mail-tokens.ts'
import { createOutbox } from '../../server/outbox/append.ts'
import { createTestDatabase } from '../support/database.ts'
import { seedAccount, seedEmail } from '../support/emails.ts'

const corpus = (name: string) => readFileSync(join(import.meta.dirname, 'corpus', `${name}.eml`), 'utf8')

test('a report to a return path that several recipients share suppresses none of them; to that of one, it does', async () => {
  await using stack = new AsyncDisposableStack()
  const { db, drop } = await createTestDatabase()
  stack.defer(drop)
  const accountId = await seedAccount(db, new Date())
  const tokens = createMailTokens(Buffer.alloc(32, 7))
  const outbox = createOutbox({ clock: systemClock, wake: () => undefined })
  const receive = createReceiver({
    db,
    clock: systemClock,
    tokens,
    keyOf: addressKey,
    record: async (facts) => void (await recordFacts(db, { outbox, source: 'notification' }, facts)),
    onMessage: () => undefined,
  })

  async function sent(): Promise<string> {
    const to = ['eve@example.org', 'ada@example.org', 'bob@example.net']
    const emailId = await seedEmail(db, { accountId, at: new Date(), to })
    await db.updateTable('email_recipients').set({ status: 'accepted' }).where('email_id', '=', emailId).execute()
    return emailId
  }
  const report = (emailId: string, position: number | null, content: string) =>
    receive({
      mailFrom: '',
      recipients: [tokens.returnPath({ emailId, position }, 'send.example.com')],
      content: Buffer.from(content),
    })
  const suppressed = () => db.selectFrom('suppressions').select(['address', 'reason']).orderBy('address').execute()

  // As eve could write them, who has the same message as the others.
  const emailId = await sent()
  await report(emailId, null, corpus('postfix-user-unknown'))
  await report(emailId, null, corpus('arf-yahoo').replaceAll('ada@yahoo.example', 'bob@example.net'))
  const rows = await db
    .selectFrom('email_recipients')
    .select('status')
    .where('email_id', '=', emailId)
    .orderBy('position')
    .execute()
  expect(rows.map(({ status }) => status)).toEqual(['accepted', 'bounced', 'complained'])
  expect(await suppressed()).toEqual([])
  const { body } = await db
    .selectFrom('events')
    .select('body')
    .where('type', '=', 'email.bounced')
    .executeTakeFirstOrThrow()
  expect(body).toContain('"bounceType":"soft"')

  const own = await sent()
  await report(own, 1, corpus('postfix-user-unknown'))
  await report(own, 2, corpus('arf-yahoo'))
  expect(await suppressed()).toEqual([
    { address: 'ada@example.org', reason: 'hard_bounce' },
    { address: 'bob@example.net', reason: 'complaint' },
  ])
})
