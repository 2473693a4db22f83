import { expect, onTestFinished, test } from 'vitest'
import { type MailEngine, startMailEngine, startMailServer } from '../support/mail-engine.ts'
import { startScriptedSmtp } from '../support/scripted-smtp.ts'

/** 300 KiB, which is more than what is read many at a time. */
const text = `${'All work and no play makes Jack a dull boy.'.padEnd(62, ' ')}\r\n`.repeat(4_800)

const isDelivered = ({ status }: { status: string }) => status === 'delivered'
const isLarge = ({ message }: { message: string }) => message.length > 256 * 1024

/** So many to one destination; answers their ids. */
async function sendLarge(engine: MailEngine, count: number): Promise<string[]> {
  const ids: string[] = []
  for (let n = 0; n < count; n++) ids.push(await engine.send({ to: [`n${n}@example.com`], text }))
  return ids
}

test('large emails that hang leave connections to small ones, and all of them arrive, once', async () => {
  const gate = Promise.withResolvers<void>()
  const hanging = Promise.withResolvers<void>()
  await using server = await startMailServer({
    onMessage(received) {
      if (!isLarge(received)) return
      hanging.resolve()
      return gate.promise
    },
  })
  await using engine = await startMailEngine({ port: server.port, concurrency: 10 })
  const large = await sendLarge(engine, 20)
  await hanging.promise
  for (let n = 0; n < 5; n++) {
    await engine.statusOf(await engine.send({ to: [`small${n}@example.com`] }), isDelivered)
  }
  expect(server.received).toHaveLength(5)
  gate.resolve()
  // Emails that found no room are tried again.
  await engine.untilDone(large)
  expect(server.received.filter(isLarge)).toHaveLength(20)
  expect(engine.facts.map(({ kind }) => kind)).toEqual(Array(25).fill('accepted'))
})

test('a large email that is sent singly leaves while those of a campaign hang', async () => {
  const gate = Promise.withResolvers<void>()
  const hanging = Promise.withResolvers<void>()
  await using server = await startMailServer({
    onMessage({ recipients: [to = ''] }) {
      if (!to.startsWith('reader')) return
      hanging.resolve()
      return gate.promise
    },
  })
  await using engine = await startMailEngine({ port: server.port, concurrency: 10 })
  const campaign: string[] = []
  for (let n = 0; n < 30; n++) campaign.push(await engine.send({ to: [`reader${n}@example.com`], text }, 'bulk'))
  await hanging.promise
  await engine.statusOf(await engine.send({ to: ['ada@example.com'], text }), isDelivered)
  gate.resolve()
  await engine.untilDone(campaign)
  expect(server.received).toHaveLength(31)
})

test('large emails that wait for their turn are put back when the service stops', async () => {
  const server = await startScriptedSmtp({ extensions: [] })
  const engine = await startMailEngine({ port: server.port, concurrency: 10 })
  onTestFinished(async () => {
    await engine[Symbol.asyncDispose]()
    await server.stop()
  })
  server.at('data', { next: 'silence' })
  const ids = await sendLarge(engine, 20)
  await server.reached('data')
  await engine.stopWorker(0)
  for (const id of ids) {
    expect(await engine.statusOf(id, () => true)).toEqual({ status: 'queued', recipients: ['queued'], attempts: [0] })
  }
})
