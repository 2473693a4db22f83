import { expect, test } from 'vitest'
import { createSemaphore } from '../../server/lib/semaphore.ts'

/** Whether a promise has settled by the time all that waits has had its turn. */
async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  let settled = false
  void promise.then(() => {
    settled = true
  })
  await new Promise((resolve) => setImmediate(resolve))
  return settled
}

test('a semaphore gives permits that are free at once, and the others in the order of their callers', async () => {
  const semaphore = createSemaphore(10)
  const releaseFirst = await semaphore.acquire(6)
  const releaseSecond = await semaphore.acquire(4)
  const third = semaphore.acquire(5)
  const fourth = semaphore.acquire(1)
  releaseSecond()
  expect([await isSettled(third), await isSettled(fourth)]).toEqual([false, false])
  releaseFirst()
  expect([await isSettled(third), await isSettled(fourth)]).toEqual([true, true])
})

test('a semaphore releases permits once, however often its release is called', async () => {
  const semaphore = createSemaphore(10)
  const release = await semaphore.acquire(10)
  release()
  release()
  await semaphore.acquire(10)
  expect(await isSettled(semaphore.acquire(1))).toBe(false)
})

test('a semaphore serves a caller that wants more than there are, alone', async () => {
  const semaphore = createSemaphore(10)
  const release = await semaphore.acquire(11)
  const other = semaphore.acquire(1)
  expect(await isSettled(other)).toBe(false)
  release()
  expect(await isSettled(other)).toBe(true)
})

test.each([0, -1, Number.NaN])('a semaphore needs at least one permit, not %d', (size) => {
  expect(() => createSemaphore(size)).toThrow(RangeError)
})
