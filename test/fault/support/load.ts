import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { type Db, inTransaction } from '../../../server/database/connection.ts'
import { type Clock, systemClock } from '../../../server/lib/clock.ts'
import { createOutbox } from '../../../server/outbox/append.ts'
import { newId } from '../../../server/shared/ids.ts'
import { live } from '../../support/scope.ts'
import type { Ledger } from './ledger.ts'

/** Writes that go on until they are stopped, with all that became of them in the ledger. */
export type Load = AsyncDisposable & {
  /** Resolves when `count` writes more have been acknowledged. */
  acknowledged(count: number): Promise<void>
  /** Resolves when `count` requests more have been refused with 503. */
  refused(count: number): Promise<void>
  /** Ends after the requests under way. */
  stop(): Promise<void>
}

/** A request that writes. */
export type Operation = {
  path: string
  body: (mark: string) => unknown
  /** The status that acknowledges it. */
  status: number
}

export type LoadOptions = {
  ledger: Ledger
  /** Where the service is at this moment. */
  url: () => string
  key: string
  operation: Operation
  /** Writes something that is then rolled back, beside the requests. Default: nothing. */
  writeAndRollBack?: (mark: string) => Promise<void>
  /** Writes under way at once. Default: 4. */
  writers?: number
  /** Whether a write has an idempotency key, and is repeated until it is answered; else it is tried once. Default: true. */
  repeats?: boolean
  /** Between two writes of one writer. Milliseconds. Default: 10, a load and not a flood. */
  paceMs?: number
  /** Told of each write that is acknowledged. */
  onAcknowledged?: (mark: string) => void
}

/** Until a write that was not taken is tried again. Milliseconds. */
const againMs = 10
/** One write of so many is made in a transaction that is rolled back. */
const rolledBackEvery = 8

/**
 * Writes as a careful client does: a request that was not answered, or with 503, is repeated with its
 * idempotency key until it is; or as a careless one, who `repeats` nothing. Any other answer is an error.
 */
export function startLoad(options: LoadOptions): Load {
  const { ledger, url, key, operation, writeAndRollBack, writers = 4, paceMs = 10, repeats = true } = options
  const acknowledged = createCounter()
  const refused = createCounter()
  let stopping = false

  async function write(mark: string): Promise<void> {
    ledger.begin(mark)
    const idempotencyKey = repeats ? randomUUID() : null
    for (;;) {
      const status = await post(mark, idempotencyKey)
      if (status === operation.status) break
      // 409: the service still works on the request that was cut off.
      if (status !== null && status !== 409 && status !== 503) throw new Error(`a write was answered ${status}`)
      if (status === 503) refused.add()
      if (stopping || idempotencyKey === null) return
      await delay(againMs)
    }
    ledger.acknowledge(mark)
    options.onAcknowledged?.(mark)
    acknowledged.add()
  }

  async function post(mark: string, idempotencyKey: string | null): Promise<number | null> {
    try {
      const response = await fetch(`${url()}${operation.path}`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${key}`,
          'content-type': 'application/json',
          ...(idempotencyKey !== null && { 'idempotency-key': idempotencyKey }),
        },
        body: JSON.stringify(operation.body(mark)),
      })
      await response.arrayBuffer()
      return response.status
    } catch {
      return null
    }
  }

  async function run(): Promise<void> {
    for (let number = 1; !stopping; number++) {
      const mark = `${randomUUID()}@example.com`
      if (writeAndRollBack === undefined || number % rolledBackEvery !== 0) await write(mark)
      else {
        ledger.rollBack(mark)
        await writeAndRollBack(mark)
      }
      await delay(paceMs)
    }
  }

  const running = Promise.all(Array.from({ length: writers }, run))
  // Whoever waits for it is told.
  running.catch(() => undefined)

  async function stop(): Promise<void> {
    stopping = true
    await running
  }

  return {
    acknowledged: (count) => Promise.race([acknowledged.more(count), running]).then(() => undefined),
    refused: (count) => Promise.race([refused.more(count), running]).then(() => undefined),
    stop,
    // Callers that wait or stop get the error. Here it would only hide why the test ends.
    [Symbol.asyncDispose]: () => stop().catch(() => undefined),
  }
}

/** Adds subscribers, by the mark as address, and appends such events in transactions that are rolled back. */
export function addingSubscribers({
  db,
  accountId,
  clock = systemClock,
}: {
  db: Db
  accountId: string
  /** That of the service, where a test moves it. */
  clock?: Clock
}): Pick<LoadOptions, 'operation' | 'writeAndRollBack'> {
  const outbox = createOutbox({ clock, wake: () => undefined })
  return {
    operation: { path: '/v1/subscribers', body: (email) => ({ email }), status: 201 },
    async writeAndRollBack(mark) {
      const undo = new Error('undone')
      const data = { subscriberId: newId('subscriber', clock.now()), email: mark, status: 'active' } as const
      await inTransaction(db, async (trx) => {
        await outbox.append(trx, live(accountId), [{ type: 'subscriber.added', data }])
        throw undo
        // Where the database is away it is not committed either.
      }).catch(() => undefined)
    },
  }
}

function createCounter() {
  const waiting = new Set<() => void>()
  let total = 0
  return {
    add() {
      total += 1
      for (const check of waiting) check()
    },
    more(count: number): Promise<void> {
      const goal = total + count
      return new Promise((resolve) => {
        const check = () => {
          if (total < goal) return
          waiting.delete(check)
          resolve()
        }
        waiting.add(check)
      })
    },
  }
}
