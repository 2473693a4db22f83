import { expect, onTestFinished, test } from 'vitest'
import { newId } from '../../server/shared/ids.ts'
import { isDone, type MailEngine, smtpReply } from '../support/mail-engine.ts'
import { startWithScript, startWithServer } from '../support/worlds/email-delivery.ts'

async function jobsOf({ db, queue }: MailEngine, emailId: string): Promise<boolean> {
  return (await queue.emails.missing(db, [emailId])).length === 0
}

test('an email goes to its recipients in one conversation, signed, from its return path; and its job is gone', async () => {
  const { server, engine } = await startWithServer()
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

test('an email that tracks goes to each recipient by itself, each copy its own', async () => {
  const { server, engine } = await startWithServer()
  const id = await engine.send({ to: ['ada@example.com', 'bob@example.com'], trackOpens: true })
  await engine.statusOf(id, isDone)
  expect(server.received.map(({ recipients }) => recipients).sort()).toEqual([['ada@example.com'], ['bob@example.com']])
  const copies = new Map(server.received.map((one) => [one.recipients[0], one]))
  for (const [position, address] of ['ada@example.com', 'bob@example.com'].entries()) {
    const { mailFrom = '', message = '' } = copies.get(address) ?? {}
    expect(engine.tokens.readReturnPath(mailFrom)).toEqual({ emailId: id, position })
    const token = /^X-Postern-Id: (\w+)/im.exec(message)?.[1] ?? ''
    expect(engine.tokens.readCopy(token)).toEqual({ emailId: id, position })
  }
})

test('an email goes to each recipient by itself where reports come back, each with its own return path', async () => {
  const { server, engine } = await startWithServer({}, { copyForEach: true })
  const id = await engine.send({ to: ['ada@example.com', 'bob@example.com'] })
  await engine.statusOf(id, isDone)
  const copies = new Map(server.received.map((one) => [one.recipients.join(), one]))
  expect([...copies.keys()].sort()).toEqual(['ada@example.com', 'bob@example.com'])
  const messageIds = new Set<string | undefined>()
  for (const [position, address] of ['ada@example.com', 'bob@example.com'].entries()) {
    const { mailFrom = '', message = '' } = copies.get(address) ?? {}
    expect(engine.tokens.readReturnPath(mailFrom)).toEqual({ emailId: id, position })
    const token = /^X-Postern-Id: (\w+)/im.exec(message)?.[1] ?? ''
    expect(engine.tokens.readCopy(token)).toEqual({ emailId: id, position })
    // It is one email: everybody sees whom it went to.
    expect(message).toMatch(/^To: ada@example\.com, bob@example\.com\r$/m)
    messageIds.add(/^Message-ID: (.*)\r$/im.exec(message)?.[1])
  }
  expect([...messageIds]).toEqual([`<${id}@example.test>`])
})

test('an email whose links would lead nowhere waits for PUBLIC_URL, while others go out', async () => {
  const { server, engine } = await startWithServer({}, { faultOfLinks: 'PUBLIC_URL is not set' })
  const tracked = await engine.send({ to: ['ada@example.com'], trackOpens: true })
  const toAudience = await engine.send({ to: ['bob@example.com'], audienceId: newId('audience', engine.clock.now()) })
  const plain = await engine.send({ to: ['cy@example.com'] })
  await engine.statusOf(plain, isDone)
  for (const id of [tracked, toAudience]) {
    await engine.statusOf(id, ({ recipients }) => recipients[0] === 'deferred')
    const [told] = await engine.timelineOf(id)
    expect(told?.detail).toMatch(/lead nowhere \(PUBLIC_URL is not set\): it waits until the operator/)
  }
  expect(server.received.map(({ recipients }) => recipients[0])).toEqual(['cy@example.com'])
})

test('an email that is scheduled waits for its time', async () => {
  const { server, engine } = await startWithServer()
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

test('an email that is put off is tried again, and delayed is told once', async () => {
  let refusals = 2
  const { engine } = await startWithServer({
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

test('an email some of whose recipients are refused reaches the others', async () => {
  const { engine } = await startWithServer({
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

test('an email to the simulator plays its story, and meets no server', async () => {
  const { server, engine } = await startWithServer()
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

test('an email whose recipient has bounced, or has unsubscribed from the audience, by its time is not sent to them', async () => {
  const { server, engine } = await startWithServer()
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

test('an email whose domain is gone fails, and says so', async () => {
  const { engine } = await startWithServer()
  const id = await engine.send({ to: ['ada@example.com'], domainId: null })
  expect(await engine.statusOf(id, isDone)).toMatchObject({ status: 'failed' })
  expect(await engine.timelineOf(id)).toMatchObject([{ detail: expect.stringContaining('domain was deleted') }])
})

test('more than there is room for waits in the queue, and all of it arrives', async () => {
  const gate = Promise.withResolvers<void>()
  const { server, engine } = await startWithServer(
    { onMessage: () => gate.promise },
    { concurrency: 2, connectionsPerHost: 1 },
  )
  const ids: string[] = []
  for (let n = 0; n < 60; n++) ids.push(await engine.send({ to: [`n${n}@example.com`] }))
  gate.resolve()
  for (const id of ids) await engine.statusOf(id, isDone)
  expect(new Set(server.received.map(({ recipients }) => recipients[0])).size).toBe(60)
  expect(server.received).toHaveLength(60)
})

const personal = (count: number, name: string) => ({
  to: Array.from({ length: count }, (_, n) => `${name}${n}@example.com`),
  html: '<p>Hello</p>',
  trackOpens: true,
})

// The clock stands still: nothing waits for a time.
test('an email of which each recipient gets a copy of their own goes on as soon as there is room again, with more copies than there is room for', async () => {
  const { server, engine } = await startWithServer({}, { concurrency: 2, connectionsPerHost: 1 })
  const id = await engine.send(personal(30, 'ada'))
  expect(await engine.statusOf(id, isDone)).toMatchObject({ status: 'delivered', attempts: Array(30).fill(1) })
  expect(server.received).toHaveLength(30)
})

test('an email of which each recipient gets a copy of their own has another that found no room go on as soon as there is some', async () => {
  const gate = Promise.withResolvers<void>()
  onTestFinished(() => gate.resolve())
  const { server, engine } = await startWithServer(
    { onMessage: () => gate.promise },
    { concurrency: 2, connectionsPerHost: 1 },
  )
  await engine.stopWorker(0)
  // They are claimed together, and one takes all the room.
  const ids = [await engine.send(personal(6, 'ada')), await engine.send(personal(6, 'bob'))]
  engine.startWorker()
  gate.resolve()
  for (const id of ids) expect(await engine.statusOf(id, isDone)).toMatchObject({ attempts: Array(6).fill(1) })
  expect(server.received).toHaveLength(12)
})

/** A mail server that says nothing any more to DATA. */
async function startSilentAtData() {
  // One command at a time: who asks for DATA has heard of the recipients.
  const { server, engine } = await startWithScript({ extensions: [] })
  server.at('rcpt', ({ argument }) => (argument.startsWith('nobody') ? '550 5.1.1 No such user' : undefined))
  server.at('data', { next: 'silence' })
  return { server, engine }
}

test('stopping waits for what is under way, puts back what is not sent, and counts it as no attempt', async () => {
  const gate = Promise.withResolvers<void>()
  const begun = Promise.withResolvers<void>()
  const { engine } = await startWithServer(
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

test('stopping writes down what was said of some recipients, and puts back the others, of whom nothing is told', async () => {
  const { server, engine } = await startSilentAtData()
  const id = await engine.send({ to: ['nobody@example.com', 'ada@example.com'] })
  await server.reached('data')
  await engine.stopWorker(0)
  expect(await engine.statusOf(id, () => true)).toMatchObject({ recipients: ['bounced', 'queued'], attempts: [1, 0] })
  expect(await engine.eventsOf(id)).toEqual(['email.bounced'])
  expect(await jobsOf(engine, id)).toBe(true)
})

test('stopping leaves alone what another worker is sending, whose claim came after its own had lapsed', async () => {
  const { server, engine } = await startSilentAtData()
  const id = await engine.send({ to: ['ada@example.com'] })
  await server.reached('data')
  // As another worker begins it.
  await engine.db.updateTable('email_recipients').set({ attempt_count: 2 }).where('email_id', '=', id).execute()
  await engine.stopWorker(0)
  expect(await engine.statusOf(id, () => true)).toMatchObject({ recipients: ['sending'], attempts: [2] })
})
