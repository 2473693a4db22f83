import { expect, onTestFinished, test } from 'vitest'
import { type MailEngine, smtpReply, startMailEngine, startMailServer } from '../support/mail-engine.ts'

const hourMs = 3_600_000

/** When an email is looked at again. */
async function nextAttemptAt({ db }: MailEngine, emailId: string): Promise<Date> {
  const { next_attempt_at } = await db
    .selectFrom('email_recipients')
    .select('next_attempt_at')
    .where('email_id', '=', emailId)
    .executeTakeFirstOrThrow()
  return next_attempt_at ?? expect.fail('nothing is due')
}

test('an email that is put off again and again is given up after 72 hours, and told of twice in all', async () => {
  const server = await startMailServer({
    onRecipient: () => {
      throw smtpReply(451, '4.7.1 Not yet')
    },
  })
  const engine = await startMailEngine({ port: server.port })
  onTestFinished(async () => {
    await engine[Symbol.asyncDispose]()
    await server[Symbol.asyncDispose]()
  })
  const id = await engine.send({ to: ['ada@example.com'] })
  const begunAt = engine.clock.now().getTime()
  for (let attempt = 1; ; attempt++) {
    const isTried = ({ recipients: [status], attempts: [count] }: { recipients: string[]; attempts: number[] }) =>
      count === attempt && status !== 'sending'
    const { status } = await engine.statusOf(id, isTried)
    if (status === 'failed') break
    expect(engine.clock.now().getTime() - begunAt).toBeLessThan(72 * hourMs)
    const dueAt = await nextAttemptAt(engine, id)
    await engine.advance((dueAt.getTime() - engine.clock.now().getTime()) / 1000)
  }
  expect(engine.clock.now().getTime() - begunAt).toBe(72 * hourMs)
  // After 5, 10, 20, 40, 80 and 160 minutes, then every four hours, and at the end.
  expect(await engine.statusOf(id, () => true)).toEqual({ status: 'failed', recipients: ['failed'], attempts: [24] })
  expect(await engine.eventsOf(id)).toEqual(['email.delivery_delayed', 'email.failed'])
  const types = (await engine.timelineOf(id)).map(({ type }) => type)
  expect(types).toEqual([...Array(24).fill('deferred'), 'failed'])
  expect(await engine.queue.emails.missing(engine.db, [id])).toEqual([id])
})
