import { afterAll, beforeAll, expect, test } from 'vitest'
import type { SendEmail } from '../../contract/emails.ts'
import { unsubscribedFrom } from '../../server/audiences/unsubscribed.ts'
import { findSendingDomain } from '../../server/domains/service.ts'
import { createEligibility } from '../../server/emails/eligibility.ts'
import { readEmail } from '../../server/emails/validate-email.ts'
import { findWithoutTopic } from '../../server/topics/choices.ts'
import { live } from '../support/scope.ts'
import { createEmailWorld, type EmailWorld, good } from '../support/worlds/emails.ts'

let world: EmailWorld

beforeAll(async () => {
  world = await createEmailWorld()
})
afterAll(() => world.end())

/** Returns the error message for a live key that sends from a domain the account does not have. */
async function refusalOf(from: string, isCaptured: boolean): Promise<string | undefined> {
  const { db, live, time } = world
  const { email } = await readEmail({ ...good, from }, { now: time.clock.now(), path: 'body' })
  if (email === null) throw new Error('the email of the test is none')
  const means = { ...readers(), faultOfLinks: null }
  const judge = await createEligibility(db, { ...means, isCaptured }, { sender: live, emails: [email] })
  return judge.refusalOf(email, 'body')?.message
}

function readers() {
  const { suppressions } = world
  return {
    findSendingDomain,
    findSuppressed: suppressions.find,
    findUnsubscribed: unsubscribedFrom,
    findWithoutTopic,
  }
}

test('who has no domain yet hears of those that need no DNS, where there are any', async () => {
  const captured = await refusalOf('a@shop.example', true)
  expect(captured).toContain('a name that ends in .test: while email is captured, that is verified at once')
  const sent = await refusalOf('a@shop.example', false)
  expect(sent).toContain('publish its DNS records; then send again')
  expect(sent).not.toContain('.test')
})

const faultOfLinks = 'PUBLIC_URL is not set'

async function refused(changes: Partial<SendEmail>, mode: 'test' | 'live' = 'live') {
  const { db, live, time } = world
  const { email } = await readEmail({ ...good, ...changes }, { now: time.clock.now(), path: 'body' })
  if (email === null) throw new Error('the email of the test is none')
  const means = { ...readers(), isCaptured: false, faultOfLinks }
  const judge = await createEligibility(db, means, { sender: { ...live, mode }, emails: [email] })
  const refusal = judge.refusalOf(email, 'body')
  return refusal === null ? null : [refusal.code, refusal.details[0]?.path, refusal.message]
}

test('links that would lead nowhere refuse what has such links, and say what to do', async () => {
  const said = expect.stringMatching(/PUBLIC_URL is not set\. Ask the operator .* set PUBLIC_URL/)
  expect(await refused({ trackOpens: true })).toEqual(['public_url_needed', 'body.trackOpens', said])
  expect(await refused({ trackClicks: true })).toEqual(['public_url_needed', 'body.trackClicks', said])
  const { id: audienceId } = await world.audiences.create(world.db, live(world.live.accountId), { name: 'News' })
  expect(await refused({ audienceId })).toEqual(['public_url_needed', 'body.audienceId', said])
})

test('links that would lead nowhere keep nothing else from being sent, and no test key from trying', async () => {
  expect(await refused({})).toBeNull()
  expect(await refused({ trackOpens: true }, 'test')).toBeNull()
})
