import { describe, expect, onTestFinished, test } from 'vitest'
import { newId } from '../../server/ids.ts'
import {
  type MailEngine,
  type MailServerRules,
  smtpReply,
  startMailEngine,
  startMailServer,
} from '../support/mail-engine.ts'
import { startScriptedSmtp } from '../support/scripted-smtp.ts'

async function start(rules: MailServerRules = {}, options: { concurrency?: number; connectionsPerHost?: number } = {}) {
  const server = await startMailServer(rules)
  const engine = await startMailEngine({ port: server.port, ...options })
  onTestFinished(async () => {
    await engine[Symbol.asyncDispose]()
    await server[Symbol.asyncDispose]()
  })
  return { server, engine }
}

const isDone = ({ status }: { status: string }) => !['queued', 'sending', 'scheduled'].includes(status)

async function jobsOf({ db, queue }: MailEngine, emailId: string): Promise<boolean> {
  return (await queue.emails.missing(db, [emailId])).length === 0
}

describe('an email', () => {
  test('goes to its recipients in one conversation, signed, from its return path; and its job is gone', async () => {
    const { server, engine } = await start()
    const id = await engine.send({ to: ['ada@example.com', 'bob@example.com'], subject: 'Grüße' })
    expect(await engine.statusOf(id, isDone)).toEqual({
      status: 'delivered',
      recipients: ['delivered', 'delivered'],
      attempts: [1, 1],
    })
    expect(server.received).toHaveLength(1)
    const [received] = server.received
    expect(received?.recipients).toEqual(['ada@example.com', 'bob@example.com'])
    expect(engine.tokens.readReturnPath(received?.mailFrom ?? '')).toEqual({ emailId: id, position: null })
    expect(received?.message.match(/^DKIM-Signature:/gm)).toHaveLength(2)
    expect(await engine.eventsOf(id)).toEqual(['email.sent', 'email.delivered', 'email.sent', 'email.delivered'])
    expect(await jobsOf(engine, id)).toBe(false)
  })

  test('that tracks goes to each recipient by itself, each copy its own', async () => {
    const { server, engine } = await start()
    const id = await engine.send({ to: ['ada@example.com', 'bob@example.com'], trackOpens: true })
    await engine.statusOf(id, isDone)
    expect(server.received.map(({ recipients }) => recipients).sort()).toEqual([
      ['ada@example.com'],
      ['bob@example.com'],
    ])
    const copies = new Map(server.received.map((one) => [one.recipients[0], one]))
    for (const [position, address] of ['ada@example.com', 'bob@example.com'].entries()) {
      const { mailFrom = '', message = '' } = copies.get(address) ?? {}
      expect(engine.tokens.readReturnPath(mailFrom)).toEqual({ emailId: id, position })
      const token = /^X-Postern-Id: (\w+)/im.exec(message)?.[1] ?? ''
      expect(engine.tokens.readCopy(token)).toEqual({ emailId: id, position })
    }
  })

  test('that is scheduled waits for its time', async () => {
    const { server, engine } = await start()
    const scheduledAt = new Date(engine.clock.now().getTime() + 3_600_000)
    const id = await engine.send({ to: ['ada@example.com'], scheduledAt })
    const other = await engine.send({ to: ['bob@example.com'] })
    await engine.statusOf(other, isDone)
    await engine.advance(3_590)
    await engine.statusOf(await engine.send({ to: ['cy@example.com'] }), isDone)
    expect(await engine.statusOf(id, () => true)).toMatchObject({ status: 'scheduled' })
    await engine.advance(11)
    await engine.statusOf(id, isDone)
    expect(server.received.map(({ recipients }) => recipients[0])).toEqual([
      'bob@example.com',
      'cy@example.com',
      'ada@example.com',
    ])
  })

  test('that is put off is tried again, and delayed is told once', async () => {
    let refusals = 2
    const { engine } = await start({
      onRecipient: () => {
        if (refusals-- > 0) throw smtpReply(451, '4.7.1 Greylisted, try again later')
      },
    })
    const id = await engine.send({ to: ['ada@example.com'] })
    await engine.statusOf(id, ({ recipients }) => recipients[0] === 'deferred')
    await engine.advance(299)
    expect(await engine.statusOf(id, () => true)).toMatchObject({ attempts: [1] })
    await engine.advance(2)
    await engine.statusOf(id, ({ recipients, attempts }) => recipients[0] === 'deferred' && attempts[0] === 2)
    await engine.advance(601)
    expect(await engine.statusOf(id, isDone)).toMatchObject({ status: 'delivered', attempts: [3] })
    expect(await engine.eventsOf(id)).toEqual(['email.delivery_delayed', 'email.sent', 'email.delivered'])
    expect(await jobsOf(engine, id)).toBe(false)
  })

  test('some of whose recipients are refused reaches the others', async () => {
    const { engine } = await start({
      onRecipient: (address) => {
        if (address.startsWith('nobody')) throw smtpReply(550, '5.1.1 No such user')
        if (address.startsWith('later')) throw smtpReply(450, '4.2.0 Try later')
      },
    })
    const id = await engine.send({ to: ['nobody@example.com', 'ada@example.com', 'later@example.com'] })
    await engine.statusOf(id, ({ recipients }) => recipients[2] === 'deferred')
    expect(await engine.statusOf(id, () => true)).toMatchObject({
      status: 'sending',
      recipients: ['bounced', 'delivered', 'deferred'],
    })
    expect(await jobsOf(engine, id)).toBe(true)
  })

  test('to the simulator plays its story, and meets no server', async () => {
    const { server, engine } = await start()
    const id = await engine.send({ to: ['delayed+x@simulator.test', 'clicked@simulator.test', 'who@simulator.test'] })
    expect(await engine.statusOf(id, isDone)).toMatchObject({ recipients: ['delivered', 'delivered', 'bounced'] })
    expect(server.received).toEqual([])
    expect((await engine.eventsOf(id)).sort()).toEqual(
      [
        'email.delivery_delayed',
        ...['email.sent', 'email.delivered'],
        ...['email.sent', 'email.delivered', 'email.opened', 'email.clicked'],
        'email.bounced',
      ].sort(),
    )
  })

  test('whose recipient has bounced, or has unsubscribed from the audience, by its time is not sent to them', async () => {
    const { server, engine } = await start()
    const at = engine.clock.now()
    const scheduledAt = new Date(at.getTime() + 3_600_000)
    const to = ['Gone@example.com', 'left@example.com', 'ada@example.com']
    const [own, toAudience] = [
      await engine.send({ to, scheduledAt }),
      await engine.send({ to, scheduledAt, audienceId: newId('audience', at) }),
    ]
    const entry = (address: string, reason: 'hard_bounce' | 'unsubscribe') => ({
      id: newId('suppression', at),
      account_id: engine.accountId,
      address,
      address_key: address,
      reason,
      email_id: null,
      created_at: at,
    })
    await engine.db
      .insertInto('suppressions')
      .values([entry('gone@example.com', 'hard_bounce'), entry('left@example.com', 'unsubscribe')])
      .execute()
    await engine.advance(3_601)
    expect(await engine.statusOf(own, isDone)).toMatchObject({ recipients: ['suppressed', 'delivered', 'delivered'] })
    expect(await engine.statusOf(toAudience, isDone)).toMatchObject({
      recipients: ['suppressed', 'suppressed', 'delivered'],
    })
    expect(server.received.flatMap(({ recipients }) => recipients)).not.toContain('Gone@example.com')
    expect(await engine.eventsOf(own)).toContain('email.failed')
  })

  test('whose domain is gone fails, and says so', async () => {
    const { engine } = await start()
    const id = await engine.send({ to: ['ada@example.com'], domainId: null })
    expect(await engine.statusOf(id, isDone)).toMatchObject({ status: 'failed' })
    expect(await engine.timelineOf(id)).toMatchObject([{ detail: expect.stringContaining('domain was deleted') }])
  })
})

describe('an email whose domain was verified when it was accepted', () => {
  const setStatus = ({ db, domainId }: MailEngine, status: 'pending' | 'verified' | 'failed') =>
    db.updateTable('domains').set({ status }).where('id', '=', domainId).execute()

  test('and has failed since is not sent, and says so', async () => {
    const { server, engine } = await start()
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

  test('and is checked anew waits until it is verified again', async () => {
    const { engine } = await start()
    await setStatus(engine, 'pending')
    const id = await engine.send({ to: ['ada@example.com'] })
    await engine.statusOf(id, ({ recipients }) => recipients[0] === 'deferred')
    await setStatus(engine, 'verified')
    await engine.advance(301)
    expect(await engine.statusOf(id, isDone)).toMatchObject({ status: 'delivered', attempts: [2] })
    expect(await engine.eventsOf(id)).toEqual(['email.delivery_delayed', 'email.sent', 'email.delivered'])
  })
})

test('more than there is room for waits in the queue, and all of it arrives', async () => {
  const gate = Promise.withResolvers<void>()
  const { server, engine } = await start({ onMessage: () => gate.promise }, { concurrency: 2, connectionsPerHost: 1 })
  const ids: string[] = []
  for (let n = 0; n < 60; n++) ids.push(await engine.send({ to: [`n${n}@example.com`] }))
  gate.resolve()
  for (const id of ids) await engine.statusOf(id, isDone)
  expect(new Set(server.received.map(({ recipients }) => recipients[0])).size).toBe(60)
  expect(server.received).toHaveLength(60)
})

/** A mail server that says nothing any more to DATA. */
async function startSilentAtData() {
  // One command at a time: who asks for DATA has heard of the recipients.
  const server = await startScriptedSmtp({ extensions: [] })
  const engine = await startMailEngine({ port: server.port })
  onTestFinished(async () => {
    await engine[Symbol.asyncDispose]()
    await server.stop()
  })
  server.at('rcpt', ({ argument }) => (argument.startsWith('nobody') ? '550 5.1.1 No such user' : undefined))
  server.at('data', { next: 'silence' })
  return { server, engine }
}

describe('stopping', () => {
  test('waits for what is under way, puts back what is not sent, and counts it as no attempt', async () => {
    const gate = Promise.withResolvers<void>()
    const begun = Promise.withResolvers<void>()
    const { engine } = await start(
      {
        onRecipient: () => {
          begun.resolve()
          return gate.promise
        },
      },
      { concurrency: 1, connectionsPerHost: 1 },
    )
    const id = await engine.send({ to: ['ada@example.com'] })
    await begun.promise
    await engine.stopWorker(0)
    expect(await engine.statusOf(id, () => true)).toEqual({ status: 'queued', recipients: ['queued'], attempts: [0] })
    expect(await engine.eventsOf(id)).toEqual([])
    gate.resolve()
    engine.startWorker()
    await engine.advance(6)
    expect(await engine.statusOf(id, isDone)).toMatchObject({ status: 'delivered', attempts: [1] })
    expect(engine.resent).toBe(0)
  })

  test('writes down what was said of some recipients, and puts back the others, of whom nothing is told', async () => {
    const { server, engine } = await startSilentAtData()
    const id = await engine.send({ to: ['nobody@example.com', 'ada@example.com'] })
    await server.reached('data')
    await engine.stopWorker(0)
    expect(await engine.statusOf(id, () => true)).toMatchObject({ recipients: ['bounced', 'queued'], attempts: [1, 0] })
    expect(await engine.eventsOf(id)).toEqual(['email.bounced'])
    expect(await jobsOf(engine, id)).toBe(true)
  })

  test('leaves alone what another worker is sending, whose claim came after its own had lapsed', async () => {
    const { server, engine } = await startSilentAtData()
    const id = await engine.send({ to: ['ada@example.com'] })
    await server.reached('data')
    // As another worker begins it.
    await engine.db.updateTable('email_recipients').set({ attempt_count: 2 }).where('email_id', '=', id).execute()
    await engine.stopWorker(0)
    expect(await engine.statusOf(id, () => true)).toMatchObject({ recipients: ['sending'], attempts: [2] })
  })
})

test('what a worker that died was sending is sent again with the same Message-ID, and its history says so', async () => {
  const { server, engine } = await start()
  await engine.stopWorker(0)
  const id = await engine.send({ to: ['ada@example.com'] })
  // As a worker leaves it that dies after its claim: marked, and never heard of again.
  const [claimed] = await engine.queue.emails.claim('fresh', 1)
  expect(claimed?.emailId).toBe(id)
  await engine.db
    .updateTable('email_recipients')
    .set({ status: 'sending', attempt_count: 1 })
    .where('email_id', '=', id)
    .execute()
  engine.startWorker()
  // pg-boss finds the claim lapsed in one of its rounds.
  await engine.tick(60)
  const seen = await engine.statusOf(id, ({ status }) => status === 'delivered')
  expect(seen.attempts).toEqual([2])
  expect(engine.resent).toBe(1)
  expect((await engine.timelineOf(id)).map(({ type }) => type)).toEqual(['resent', 'delivered'])
  expect(server.received[0]?.message).toContain(`Message-ID: <${id}@example.test>`)
})
