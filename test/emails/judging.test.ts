import { afterAll, beforeAll, expect, test } from 'vitest'
import { findSendingDomain } from '../../server/domains/service.ts'
import { createJudge } from '../../server/emails/judging.ts'
import { readEmail } from '../../server/emails/read-email.ts'
import { createEmailWorld, type EmailWorld, good } from './world.ts'

let world: EmailWorld

beforeAll(async () => {
  world = await createEmailWorld()
})
afterAll(() => world.end())

/** What a live key is told that sends from a domain the account does not have. */
async function refusalOf(from: string, isCaptured: boolean): Promise<string | undefined> {
  const { db, live, suppressions, contacts, time } = world
  const { email } = readEmail({ ...good, from }, { now: time.clock.now(), path: 'body' })
  if (email === null) throw new Error('the email of the test is none')
  const means = { findSendingDomain, findSuppressed: suppressions.find, findUnsubscribed: contacts.unsubscribed }
  const judge = await createJudge(db, { ...means, isCaptured }, { sender: live, emails: [email] })
  return judge.refusalOf(email, 'body')?.message
}

test('who has no domain yet hears of those that need no DNS, where there are any', async () => {
  const captured = await refusalOf('a@shop.example', true)
  expect(captured).toContain('a name that ends in .test: while email is captured, that is verified at once')
  const sent = await refusalOf('a@shop.example', false)
  expect(sent).toContain('publish its DNS records; then send again')
  expect(sent).not.toContain('.test')
})
