import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Load, type Receiver, startLoad, startReceiver } from '../../scripts/bench/lab.ts'
import { createProcesses, type Processes } from '../../scripts/bench/processes.ts'

let processes: Processes
let receiver: Receiver
let load: Load
beforeAll(async () => {
  processes = createProcesses()
  receiver = await startReceiver(processes)
  load = await startLoad(processes)
})
afterAll(() => processes[Symbol.asyncDispose]())
beforeEach(() => receiver.reset('nothing'))

async function post(path: string, options: { origin?: string; signal?: AbortSignal } = {}): Promise<number> {
  const { origin = receiver.url, signal = null } = options
  const answer = await fetch(origin + path, { method: 'POST', body: '{}', signal })
  await answer.text()
  return answer.status
}

describe('an endpoint', () => {
  test('an endpoint answers as the first part of its path says', async () => {
    expect(await post('/ok/0')).toBe(200)
    expect(await post('/status-503/0')).toBe(503)
    expect(await post('/after-1/0')).toBe(200)
  })

  test('an endpoint that fails one request in three fails the third, each path by itself', async () => {
    const statuses: number[] = []
    for (const path of ['a', 'a', 'b', 'a', 'a', 'b', 'b']) statuses.push(await post(`/after-1-failing-3/${path}`))
    expect(statuses).toEqual([200, 200, 200, 500, 200, 200, 500])
  })

  test('an endpoint that is down closes the connection', async () => {
    await expect(post('/down/0')).rejects.toThrow('fetch failed')
  })

  test('an endpoint that hangs has got the request and does not answer', async () => {
    const giveUp = new AbortController()
    const answered = post('/hang/0', { signal: giveUp.signal })
    await receiver.until('hang', 1)
    // Answered after the other, if at all.
    expect(await Promise.race([answered, post('/after-50/0').then(() => 'nothing')])).toBe('nothing')
    giveUp.abort()
    await expect(answered).rejects.toThrow('aborted')
  })

  test('an endpoint that is told to answers otherwise meanwhile, and others do not', async () => {
    await receiver.behave('/ok/0', 'status-500')
    expect(await post('/ok/0')).toBe(500)
    expect(await post('/ok/1')).toBe(200)
    await receiver.behave('/ok/0', null)
    expect(await post('/ok/0')).toBe(200)
  })

  test.runIf(process.platform === 'linux')('an endpoint answers at another loopback address too', async () => {
    const url = new URL(receiver.url)
    url.hostname = '127.0.0.2'
    await receiver.listenToo(url.hostname)
    expect(await post('/ok/0', { origin: url.origin })).toBe(200)
    expect(await receiver.count('ok')).toBe(1)
  })
})

const request = { method: 'POST' as const, path: '/ok/0', headers: {}, body: '{}' }
const options = () => ({ origins: [receiver.url], requests: [request], seconds: 600, connections: 3 })

test.each([{ rate: 1_000 }, {}])('a load ends after so many requests, at %o', async (rate) => {
  const { latencies } = await load.run({ ...options(), ...rate, count: 20 }, 200)
  expect(latencies).toHaveLength(20)
  expect(await receiver.count('ok')).toBe(20)
})

test('a load ends when it is told to, and has an answer to all it has sent', async () => {
  const running = load.run(options(), 200)
  await receiver.until('ok', 10)
  await load.stop()
  const { latencies } = await running
  expect(latencies).toHaveLength(await receiver.count('ok'))
})
