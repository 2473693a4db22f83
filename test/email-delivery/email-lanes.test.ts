import { expect, onTestFinished, test } from 'vitest'
import { lanes } from '../../server/shared/lanes.ts'
import { isDone, type Received } from '../support/mail-engine.ts'
import { startWithServer } from '../support/worlds/email-delivery.ts'

/** A mail server that keeps what goes to `campaign.test` waiting, over ten connections. */
async function startHoldingCampaigns() {
  const gate = Promise.withResolvers<void>()
  onTestFinished(() => gate.resolve())
  const held = (address: string) => address.endsWith('@campaign.test')
  const begun: string[] = []
  const nine = Promise.withResolvers<void>()
  const onMessage = async ({ recipients: [to = ''] }: Received) => {
    if (!held(to)) return
    begun.push(to)
    if (begun.length === 9) nine.resolve()
    await gate.promise
  }
  const { server, engine } = await startWithServer({ onMessage }, { concurrency: 10, connectionsPerHost: 10 })
  return { server, engine, begun, nine: nine.promise, open: gate.resolve }
}

test('an email that is sent singly leaves while all that a campaign may have under way hangs', async () => {
  const { engine, begun, nine, open } = await startHoldingCampaigns()
  const campaign: string[] = []
  for (let n = 0; n < 60; n++) campaign.push(await engine.send({ to: [`n${n}@campaign.test`] }, 'bulk'))
  await nine
  for (let n = 0; n < 5; n++) {
    const id = await engine.send({ to: ['ada@example.com'] })
    expect(await engine.statusOf(id, isDone)).toMatchObject({ status: 'delivered', attempts: [1] })
  }
  expect(begun).toHaveLength(9)
  open()
  for (const id of campaign) expect(await engine.statusOf(id, isDone)).toMatchObject({ attempts: [1] })
})

test('stopping puts back the emails in bulk that no server has, without an attempt, and another worker sends them once', async () => {
  const { server, engine, begun, nine, open } = await startHoldingCampaigns()
  const ids: string[] = []
  for (let n = 0; n < 30; n++) ids.push(await engine.send({ to: [`n${n}@campaign.test`] }, 'bulk'))
  await nine
  await engine.stopWorker(0)
  const states = await Promise.all(ids.map((id) => engine.statusOf(id, () => true)))
  // The servers of the others were sent a whole message.
  expect(states.filter(({ status, attempts }) => status === 'queued' && attempts[0] === 0)).toHaveLength(
    30 - begun.length,
  )
  open()
  engine.startWorker()
  await engine.untilDone(ids)
  const others = server.received.flatMap(({ recipients }) => recipients).filter((to) => !begun.slice(0, 9).includes(to))
  expect(others).toHaveLength(21)
  expect(new Set(others).size).toBe(21)
})

// The clock stands still, and the worker does not poll: nothing waits for a time.
test.each(lanes)('more than there is room for waits in the lane %s, and all of it arrives', async (lane) => {
  const { server, engine } = await startWithServer(
    {},
    { concurrency: 2, connectionsPerHost: 1, pollIntervalMs: 3_600_000 },
  )
  const ids: string[] = []
  for (let n = 0; n < 30; n++) {
    const to = [`a${n}@example.com`, `b${n}@example.com`, `c${n}@example.com`]
    const personal = { to, html: '<p>Hello</p>', trackOpens: true }
    ids.push(await engine.send(personal, lane))
  }
  for (const id of ids) expect(await engine.statusOf(id, isDone)).toMatchObject({ attempts: [1, 1, 1] })
  expect(new Set(server.received.map(({ recipients }) => recipients[0])).size).toBe(90)
  expect(server.received).toHaveLength(90)
})

test('an email in bulk that a server puts off is tried again in bulk', async () => {
  let refusals = 1
  const { engine } = await startWithServer({
    onRecipient() {
      if (refusals-- > 0) throw Object.assign(new Error('4.7.1 Not now'), { responseCode: 450 })
    },
  })
  const id = await engine.send({ to: ['ada@example.com'] }, 'bulk')
  await engine.statusOf(id, ({ recipients }) => recipients[0] === 'deferred')
  await engine.stopWorker(2_000)
  await engine.advance(3_600)
  expect(await engine.queue.emails.claim('due', 'single', 10)).toEqual([])
  expect((await engine.queue.emails.claim('due', 'bulk', 10)).map(({ emailId }) => emailId)).toEqual([id])
})
