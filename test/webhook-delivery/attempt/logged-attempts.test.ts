import { afterAll, beforeAll, expect, test } from 'vitest'
import { attempted, type Engine, startEngine } from '../../support/engine.ts'
import { answer, type Behaviour, startReceiver } from '../../support/receiver.ts'
import { live } from '../../support/scope.ts'

let engine: Engine
beforeAll(async () => {
  engine = await startEngine()
})
afterAll(() => engine.stop())

test.each<[string, Behaviour, object]>([
  [
    'shows the status and the body of an answer that broke off',
    ({ socket }) => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nfive.'),
    {
      responseStatus: 200,
      responseBody: 'five.',
      error: 'The endpoint closed the connection before its answer was complete.',
    },
  ],
  [
    'shows the status of an answer whose headers contradict each other, and says which',
    ({ socket }) => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 2\r\n\r\nok'),
    {
      responseStatus: 200,
      responseBody: '',
      error: 'The endpoint’s answer is not valid HTTP: it has more than one Content-Length.',
    },
  ],
  [
    'shows no status where none came',
    ({ socket }) => socket.destroy(),
    { responseStatus: null, responseBody: null, error: 'The endpoint closed the connection without an answer.' },
  ],
])('the log of an attempt: %s', async (_name, behaviour, logged) => {
  await using receiver = await startReceiver()
  receiver.respond(behaviour)
  const webhookId = await engine.addWebhook(receiver.url, ['contact.deleted'])
  await engine.emit(1)
  const { id } = await engine.deliveryOf(webhookId, attempted(1))
  const delivery = await engine.deliveries.get(engine.db, live(engine.accountId), webhookId, id)
  expect(delivery).toMatchObject({ status: 'pending', attempts: [{ number: 1, reposted: false, ...logged }] })
})

test('the log of an attempt says of a success and of a failure that the request was posted twice', async () => {
  await using receiver = await startReceiver()
  const webhookId = await engine.addWebhook(receiver.url, ['contact.created'])
  const close: Behaviour = ({ socket }) => socket.destroy()
  for (const [count, behaviours] of [
    [1, []],
    [2, [close]],
    [3, [close, answer(500)]],
  ] as const) {
    receiver.respondOnce(...behaviours)
    await engine.emit(1, 'contact.created')
    await engine.deliveriesOf(webhookId, count, attempted(1))
  }
  const rows = await engine.deliveriesNow(webhookId)
  const attempts = await Promise.all(
    rows.map(({ id }) => engine.deliveries.get(engine.db, live(engine.accountId), webhookId, id)),
  )
  expect(attempts.map((one) => one.attempts.map(({ responseStatus, reposted }) => [responseStatus, reposted]))).toEqual(
    [[[200, false]], [[200, true]], [[500, true]]],
  )
})
