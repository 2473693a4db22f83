import { expect } from 'vitest'
import type { TestTime } from '../../support/clock.ts'
import type { TestService } from '../../support/service.ts'
import { isDone, verdict } from './evidence.ts'
import { createLedger } from './ledger.ts'
import { addingSubscribers, type Load, type LoadOptions, startLoad } from './load.ts'
import { type Recorder, startRecorder } from './recorder.ts'
import { subscribe } from './subscribe.ts'

/** Records all that is written to a service under test, and all that it sends. */
export type Books = AsyncDisposable & {
  recorder: Recorder
  /** Writes through a process. Default: people are added. Some writes beside it are rolled back. */
  startLoad(through: Pick<TestService, 'url'>, options?: Partial<Pick<LoadOptions, 'operation'>>): Load
  /** Waits until nothing is left to deliver, and answers what was lost or is wrong. See `verdict`. */
  verdict(): Promise<string[]>
}

/** Time that is moved on at once while something is left to deliver. Milliseconds. */
const stepMs = 10_000

/** For a service that nothing has been written to yet. `time`: that which it runs in, where a test moves it. */
export async function keepBooks(
  { url, keys, accountId, database: { db } }: Pick<TestService, 'url' | 'keys' | 'accountId' | 'database'>,
  time?: TestTime,
): Promise<Books> {
  const recorder = await startRecorder()
  const ledger = createLedger()
  const key = keys.live
  const adding = addingSubscribers({ db, accountId, ...(time && { clock: time.clock }) })
  await subscribe({ url, key, recorder, count: 2, events: ['subscriber.added', 'contact.created'] })
  return {
    recorder,
    startLoad: (through, options) => startLoad({ ledger, url: () => through.url, key, ...adding, ...options }),
    async verdict() {
      if (time) {
        const isDoneByNow = async () => {
          if (await isDone(db)) return true
          await time.advance(stepMs)
          return false
        }
        await expect.poll(isDoneByNow).toBe(true)
      }
      return verdict({ db, ledger, recorder })
    },
    [Symbol.asyncDispose]: () => recorder[Symbol.asyncDispose](),
  }
}
