import { describe, expect, test } from 'vitest'
import { deleteDomain, isDone, type MailEngine, setStatus } from '../support/mail-engine.ts'
import { startWithServer } from '../support/worlds/email-delivery.ts'

describe('an email whose domain was verified when it was accepted', () => {
  test.each([
    ['was deleted', deleteDomain, 'The sending domain was deleted before the email was sent.'],
    [
      'has failed',
      (engine: MailEngine) => setStatus(engine, 'failed'),
      'The sending domain "example.test" is not verified any more: its DNS records were gone on several days before the email was sent.',
    ],
  ])(
    'an email whose domain %s since is not sent, though another of the domain was sent a moment ago',
    async (_what, change, reason) => {
      const { server, engine } = await startWithServer()
      const before = await engine.send({ to: ['ada@example.com'] })
      await engine.statusOf(before, isDone)
      await change(engine)
      const id = await engine.send({ to: ['bob@example.com'] })
      expect(await engine.statusOf(id, isDone)).toMatchObject({ status: 'failed' })
      expect(await engine.timelineOf(id)).toMatchObject([{ type: 'failed', detail: reason }])
      expect(server.received.map(({ recipients }) => recipients)).toEqual([['ada@example.com']])
    },
  )

  test('a large email whose domain was deleted while it waited for another is not sent', async () => {
    const gate = Promise.withResolvers<void>()
    const begun = Promise.withResolvers<void>()
    const { server, engine } = await startWithServer(
      {
        onMessage: () => {
          begun.resolve()
          return gate.promise
        },
      },
      { concurrency: 2 },
    )
    const text = 'It is good to have you here.\n'.repeat(10_000)
    const first = await engine.send({ to: ['ada@example.com'], text })
    await begun.promise
    const second = await engine.send({ to: ['bob@example.com'], text })
    await engine.statusOf(second, ({ status }) => status === 'sending')
    await deleteDomain(engine)
    gate.resolve()
    expect(await engine.statusOf(first, isDone)).toMatchObject({ status: 'delivered' })
    expect(await engine.statusOf(second, isDone)).toMatchObject({ status: 'failed' })
    expect(server.received.map(({ recipients }) => recipients)).toEqual([['ada@example.com']])
  })

  test('an email whose domain has failed since is not sent, and says so', async () => {
    const { server, engine } = await startWithServer()
    await setStatus(engine, 'failed')
    const id = await engine.send({ to: ['ada@example.com'] })
    expect(await engine.statusOf(id, isDone)).toMatchObject({ status: 'failed' })
    expect(await engine.timelineOf(id)).toMatchObject([
      { type: 'failed', detail: expect.stringContaining('"example.test" is not verified any more') },
    ])
    expect(await engine.eventsOf(id)).toEqual(['email.failed'])
    expect(server.received).toEqual([])

    // At once, whatever is remembered of domains.
    await setStatus(engine, 'verified')
    const other = await engine.send({ to: ['bob@example.com'] })
    expect(await engine.statusOf(other, isDone)).toMatchObject({ status: 'delivered' })
  })

  test('an email whose domain is checked anew waits until it is verified again', async () => {
    const { engine } = await startWithServer()
    await setStatus(engine, 'pending')
    const id = await engine.send({ to: ['ada@example.com'] })
    await engine.statusOf(id, ({ recipients }) => recipients[0] === 'deferred')
    await setStatus(engine, 'verified')
    await engine.advance(301)
    expect(await engine.statusOf(id, isDone)).toMatchObject({ status: 'delivered', attempts: [2] })
    expect(await engine.eventsOf(id)).toEqual(['email.delivery_delayed', 'email.sent', 'email.delivered'])
  })
})
