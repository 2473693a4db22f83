import { describe, expect, test } from 'vitest'
import { newId } from '../../server/shared/ids.ts'
import { deleteDomain, isDone, type MailEngine, setStatus } from '../support/mail-engine.ts'
import { addCampaign, pass } from '../support/worlds/campaign-of-emails.ts'
import { startWithScript } from '../support/worlds/email-delivery.ts'

const typesOf = async (engine: MailEngine, id: string) => (await engine.timelineOf(id)).map(({ type }) => type)

function suppressAda({ db, clock, accountId }: MailEngine) {
  const at = clock.now()
  return db
    .insertInto('suppressions')
    .values({
      id: newId('suppression', at),
      account_id: accountId,
      address: 'ada@example.com',
      address_key: 'ada@example.com',
      reason: 'manual',
      email_id: null,
      created_at: at,
    })
    .execute()
}

describe('what a worker that died was sending', () => {
  /** An email as such a worker leaves it, found by another after `meanwhile`. */
  async function foundAfter(meanwhile: (engine: MailEngine) => Promise<unknown> = async () => undefined) {
    const { server, engine } = await startWithScript()
    await engine.stopWorker(0)
    const id = await engine.send({ to: ['ada@example.com'] })
    // Marked after its claim, and never heard of again.
    const [claimed] = await engine.queue.emails.claim('fresh', 'single', 1)
    expect(claimed?.emailId).toBe(id)
    await engine.db
      .updateTable('email_recipients')
      .set({ status: 'sending', attempt_count: 1, first_attempt_at: engine.clock.now() })
      .where('email_id', '=', id)
      .execute()
    await meanwhile(engine)
    engine.startWorker()
    // pg-boss finds the claim lapsed in one of its rounds.
    await engine.tick(60)
    return { server, engine, id }
  }

  test('an email that a worker was sending when it died is sent again with the same Message-ID, and its history says so', async () => {
    const { server, engine, id } = await foundAfter()
    const seen = await engine.statusOf(id, ({ status }) => status === 'delivered')
    expect(seen.attempts).toEqual([2])
    expect(engine.resent).toBe(1)
    expect(await engine.timelineOf(id)).toMatchObject([
      { type: 'resent', detail: expect.stringContaining('The service stopped while it was sending') },
      { type: 'delivered' },
    ])
    expect(server.messages[0]?.data.toString()).toContain(`Message-ID: <${id}@example.test>`)
  })

  test.each([
    ['whose address was suppressed since', suppressAda],
    ['whose domain was deleted since', deleteDomain],
    ['whose domain has failed since', (engine: MailEngine) => setStatus(engine, 'failed')],
  ])(
    'an email of a dead worker %s is not sent again, and its history says that the recipient may have it',
    async (_which, meanwhile) => {
      const { server, engine, id } = await foundAfter(meanwhile)
      expect(await engine.statusOf(id, isDone)).toMatchObject({ status: 'failed' })
      expect(await engine.timelineOf(id)).toEqual([
        {
          position: 0,
          type: 'failed',
          detail: expect.stringMatching(/before the email was sent again\. .*may have it\.$/),
        },
      ])
      expect(await engine.eventsOf(id)).toEqual(['email.failed'])
      expect(server.messages).toEqual([])
      expect(engine.resent).toBe(0)
    },
  )

  test('an email of a dead worker whose domain is checked anew is said to be sent again only when it is', async () => {
    const { engine, id } = await foundAfter((engine) => setStatus(engine, 'pending'))
    await engine.statusOf(id, ({ recipients }) => recipients[0] === 'deferred')
    expect(await engine.timelineOf(id)).toMatchObject([
      { type: 'unknown', detail: expect.stringMatching(/the server took the message is not known.*waits for them/) },
    ])
    expect(engine.resent).toBe(0)
    await setStatus(engine, 'verified')
    await engine.advance(601)
    expect(await engine.statusOf(id, isDone)).toMatchObject({ status: 'delivered', attempts: [3] })
    expect(await typesOf(engine, id)).toEqual(['unknown', 'resent', 'delivered'])
    expect(engine.resent).toBe(1)
  })

  /** The same with an email of a paused campaign, whose first attempt was so many hours ago. */
  async function foundInPause(hoursAgo: number) {
    const found = await foundAfter(async (engine) => {
      const campaign = await addCampaign(engine)
      await campaign.set('paused')
      await engine.db.updateTable('emails').set({ campaign_id: campaign.id }).execute()
      const firstAttemptAt = new Date(engine.clock.now().getTime() - hoursAgo * 3_600_000)
      await engine.db.updateTable('email_recipients').set({ first_attempt_at: firstAttemptAt }).execute()
    })
    const { engine, id } = found
    expect(await engine.statusOf(id, isDeferred)).toMatchObject({ status: 'sending', attempts: [1] })
    return {
      ...found,
      async resume(): Promise<void> {
        await engine.db.updateTable('campaigns').set({ status: 'sending' }).execute()
        await engine.advance(61)
      },
    }
  }
  const isDeferred = ({ recipients }: { recipients: string[] }) => recipients[0] === 'deferred'

  test('an email of a dead worker whose campaign is paused is said to wait, and is sent again when it goes on, also after 72 hours', async () => {
    const { server, engine, id, resume } = await foundInPause(73)
    expect(await engine.timelineOf(id)).toMatchObject([
      {
        type: 'unknown',
        detail: expect.stringMatching(
          /the server took the message is not known\. The message is sent again unless the campaign is canceled\.$/,
        ),
      },
    ])
    expect(await engine.eventsOf(id)).toEqual(['email.delivery_delayed'])
    await pass(engine, 61)
    expect(server.messages).toEqual([])
    await resume()
    expect(await engine.statusOf(id, isDone)).toMatchObject({ status: 'delivered', attempts: [2] })
    expect(await typesOf(engine, id)).toEqual(['unknown', 'resent', 'delivered'])
  })

  test('an email of a dead worker has no time of the pause counted in its 72 hours', async () => {
    const { server, engine, id, resume } = await foundInPause(1)
    await pass(engine, 4 * 86_400)
    server.at('rcpt', '451 4.2.0 Later')
    await resume()
    const isTriedAgain = ({ recipients, attempts }: { recipients: string[]; attempts: number[] }) =>
      attempts[0] === 2 && recipients[0] !== 'sending'
    expect(await engine.statusOf(id, isTriedAgain)).toMatchObject({ recipients: ['deferred'] })
  })
})

describe('what was sent whole over a line that broke before its answer', () => {
  async function startBreaking(breaks: number) {
    const { server, engine } = await startWithScript()
    let left = breaks
    server.at('message', () => (left-- > 0 ? { next: 'drop' } : undefined))
    const id = await engine.send({ to: ['ada@example.com'] })
    await engine.statusOf(id, ({ recipients }) => recipients[0] === 'deferred')
    return { server, engine, id }
  }
  test('an email whose answer was lost is said and counted to be sent again when it is, once for each lost answer', async () => {
    const { server, engine, id } = await startBreaking(1)
    expect(await typesOf(engine, id)).toEqual(['unknown'])
    expect(engine.resent).toBe(0)
    server.at('rcpt', '451 4.2.0 Later')
    await engine.advance(301)
    await engine.statusOf(id, ({ recipients, attempts }) => recipients[0] === 'deferred' && attempts[0] === 2)
    server.at('rcpt', () => undefined)
    await engine.advance(601)
    await engine.statusOf(id, isDone)
    expect(await typesOf(engine, id)).toEqual(['unknown', 'resent', 'deferred', 'delivered'])
    expect(engine.resent).toBe(1)
  })

  test('an email whose answer was lost is not sent again to an address suppressed since, who is said to may have it', async () => {
    const { engine, id } = await startBreaking(1)
    await suppressAda(engine)
    await engine.advance(301)
    expect(await engine.statusOf(id, isDone)).toMatchObject({ status: 'failed' })
    expect(await engine.timelineOf(id)).toMatchObject([
      { type: 'unknown' },
      { type: 'failed', detail: expect.stringContaining('the recipient may have it') },
    ])
    expect(engine.resent).toBe(0)
  })
})
