import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Db } from '../database/connection.ts'
import type { Clock } from '../lib/clock.ts'
import { startLoop } from '../lib/polling-loop.ts'
import { newId } from '../shared/ids.ts'
import type { ReceivedMessage } from '../smtp-listener/listener.ts'
import { insertCaptured, type NewCapturedMessage } from './captured-queries.ts'
import { deleteOlderMessages } from './queries.ts'

/** Captured messages kept for each account. Older ones are deleted in the background. */
export const keptPerAccount = 1_000

/** Stores captured messages. */
export type CaptureStore = {
  /** Stores a message. Resolves when it is committed. Messages that arrive during a write share the next statement. */
  add(message: ReceivedMessage): Promise<void>
  /** Stops deleting old messages. All calls of `add` must have resolved before. */
  close(): Promise<void>
}

export type CaptureStoreOptions = {
  db: Db
  clock: Clock
  /** Reads the id of an email from a return path of this service; null: it is not one. */
  readReturnPath: (address: string) => string | null
  /** Called when deleting old messages failed. It is tried again. */
  onError: (error: unknown) => void
  /** Messages to keep for each account. Default: `keptPerAccount`. */
  keep?: number
}

/** Maximum bytes of one statement. A single message may be larger. */
const batchBytes = 8 * 1_048_576
const batchMessages = 500
/** Number of new messages of an account that triggers the deletion of its old ones. */
const slack = 100
const pruneIntervalMs = 60_000

type QueuedMessage = { message: NewCapturedMessage; resolve: () => void; reject: (error: unknown) => void }

export function createCaptureStore(options: CaptureStoreOptions): CaptureStore {
  const { db, clock, keep = keptPerAccount } = options
  const waiting: QueuedMessage[] = []
  let isWriting = false
  /** Messages added for each account since its older messages were deleted. */
  const added = new Map<string | null, number>()

  const prune = startLoop({
    intervalMs: pruneIntervalMs,
    onError: options.onError,
    async run() {
      for (const [accountId, number] of [...added]) {
        await deleteOlderMessages(db, 'captured_messages', accountId, keep)
        const since = (added.get(accountId) ?? 0) - number
        if (since > 0) added.set(accountId, since)
        else added.delete(accountId)
      }
      return false
    },
  })

  function count(accountId: string | null): void {
    const number = (added.get(accountId) ?? 0) + 1
    added.set(accountId, number)
    if (number >= slack) prune.wake()
  }

  async function write(batch: readonly QueuedMessage[]): Promise<void> {
    try {
      const rows = await insertCaptured(
        db,
        batch.map(({ message }) => message),
      )
      for (const { accountId } of rows) count(accountId)
      for (const { resolve } of batch) resolve()
    } catch (error) {
      for (const { reject } of batch) reject(error)
    }
  }

  async function writeAll(): Promise<void> {
    if (isWriting) return
    isWriting = true
    while (waiting.length > 0) {
      // Messages that arrive in the same moment are written together.
      await nextTurn()
      await write(waiting.splice(0, lengthOfBatch(waiting)))
    }
    isWriting = false
  }

  return {
    async add({ mailFrom, recipients, content }) {
      const at = clock.now()
      const emailId = options.readReturnPath(mailFrom)
      const message = { id: newId('capturedMessage', at), emailId, mailFrom, recipients, content, at }
      const written = new Promise<void>((resolve, reject) => waiting.push({ message, resolve, reject }))
      await Promise.all([written, writeAll()])
    },
    close: () => prune.stop(),
  }
}

function lengthOfBatch(waiting: readonly QueuedMessage[]): number {
  let bytes = 0
  const beyond = waiting.findIndex(({ message }, index) => {
    bytes += message.content.length
    return index > 0 && (bytes > batchBytes || index === batchMessages)
  })
  return beyond === -1 ? waiting.length : beyond
}
