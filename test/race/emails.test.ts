import { expect, onTestFinished, test } from 'vitest'
import { isDone, startMailEngine } from '../support/mail-engine.ts'
import { startScriptedSmtp } from '../support/scripted-smtp.ts'

/*
 * Two workers that send email out of one database, one of which stops in the midst of it. Neither dies, so
 * nothing is sent twice.
 */

test('what two workers find at once is sent once, also while one of them stops', async () => {
  const server = await startScriptedSmtp()
  const engine = await startMailEngine({ port: server.port, concurrency: 4, connectionsPerHost: 1 })
  const other = engine.worker
  engine.startWorker()
  onTestFinished(async () => {
    await other.stop(2_000)
    await engine[Symbol.asyncDispose]()
    await server.stop()
  })
  const ids: string[] = []
  async function send(count: number): Promise<void> {
    for (let n = 0; n < count; n++) {
      ids.push(await engine.send({ to: ['ada@example.com', 'bob@example.com'] }))
      other.wake('single')
    }
  }
  const gate = Promise.withResolvers<undefined>()
  server.at('message', ({ count }) => (count < 20 ? undefined : gate.promise))
  await send(60)
  // Either has a message under way that is sent whole.
  await server.reached('message', 22)
  const stopped = other.stop(0)
  await send(10)
  gate.resolve(undefined)
  await Promise.all([stopped, send(50)])
  // Emails that were put back are claimed again.
  await engine.untilDone(ids)
  for (const id of ids) {
    expect(await engine.statusOf(id, isDone)).toMatchObject({ status: 'delivered', attempts: [1, 1] })
  }
  // One has one connection: both have sent.
  expect(server.mostOpen).toBeGreaterThan(1)
  expect(new Set(server.messages.map(messageIdOf)).size).toBe(ids.length)
  expect(server.messages).toHaveLength(ids.length)
  expect(engine.resent).toBe(0)
})

function messageIdOf({ data }: { data: Buffer }): string {
  return /^Message-ID: (.+)$/im.exec(data.toString('latin1'))?.[1]?.trim() ?? 'nothing'
}
