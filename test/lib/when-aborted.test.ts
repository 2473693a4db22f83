import { getEventListeners } from 'node:events'
import { expect, test } from 'vitest'
import { unlessAborted } from '../../server/lib/unless-aborted.ts'
import { whenAborted } from '../../server/lib/when-aborted.ts'

test('every callback of a signal is called when it is aborted, but not one that was taken back', () => {
  const stopping = new AbortController()
  const called: string[] = []
  whenAborted(stopping.signal, () => called.push('first'))
  const takeBack = whenAborted(stopping.signal, () => called.push('second'))
  whenAborted(stopping.signal, () => called.push('third'))
  takeBack()
  stopping.abort()
  expect(called).toEqual(['first', 'third'])
})

test('a thousand callbacks of a signal have one listener, which goes with the last of them', () => {
  const { signal } = new AbortController()
  const takeBack = Array.from({ length: 1_000 }, () => whenAborted(signal, () => undefined))
  expect(getEventListeners(signal, 'abort')).toHaveLength(1)
  for (const one of takeBack) one()
  expect(getEventListeners(signal, 'abort')).toEqual([])
})

test('work that nobody aborts settles as it does, and leaves no listener', async () => {
  const { signal } = new AbortController()
  const reason = () => new Error('aborted')
  expect(await unlessAborted(Promise.resolve(1), signal, reason)).toBe(1)
  await expect(unlessAborted(Promise.reject(new Error('its own')), signal, reason)).rejects.toThrow('its own')
  expect(getEventListeners(signal, 'abort')).toEqual([])
})

test('work that does not end is rejected with the reason when its signal is aborted, before or meanwhile', async () => {
  const stopping = new AbortController()
  const never = new Promise<never>(() => undefined)
  const waiting = unlessAborted(never, stopping.signal, () => new Error('aborted'))
  stopping.abort()
  await expect(waiting).rejects.toThrow('aborted')
  await expect(unlessAborted(never, stopping.signal, () => new Error('was aborted'))).rejects.toThrow('was aborted')
})
