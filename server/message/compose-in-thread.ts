import type { Clock } from '../lib/clock.ts'
import { createSemaphore } from '../lib/semaphore.ts'
import { largeBytes, runInThread } from '../lib/worker-thread.ts'
import { type Composer, createComposer, isPersonal, type MessageParts } from './compose.ts'
import { createMailTokens } from './mail-tokens.ts'

export type ComposingOptions = {
  /** The encryption key. The keys of the tokens are derived from it. */
  key: Buffer
  /** Returns the public URL of this service, without a slash at the end. */
  publicUrl: () => string
  /** Gives the time of the signature. */
  clock: Clock
}

/** The input of a composing thread. */
export type ComposingTask = {
  key: Uint8Array
  /** Null: the message has no links to this service. */
  publicUrl: string | null
  signedAt: Date
  parts: MessageParts
  only: number | null
}

/** The result of a composing thread: the message, or an error message. */
export type Composed = { message: Uint8Array } | { error: string }

/** Maximum concurrent threads. Each takes tens of megabytes besides its message. */
const threadsAtOnce = 2

/** Creates a composer that composes large messages in a worker thread, so that they do not block the event loop. */
export function createMailComposer({ key, publicUrl, clock }: ComposingOptions): Composer {
  const composer = createComposer({ tokens: createMailTokens(key), publicUrl, clock })
  const threads = createSemaphore(threadsAtOnce)

  /** Composes a message in a thread. Null: the thread could not be started, or it failed. */
  async function composeInThread(parts: MessageParts, only: number | null): Promise<Composed | null> {
    const release = await threads.acquire()
    try {
      const task: ComposingTask = { key, publicUrl: publicUrlOf(parts), signedAt: clock.now(), parts, only }
      return await runInThread<Composed>(new URL('./compose-thread.ts', import.meta.url), { data: task })
    } finally {
      release()
    }
  }

  /** Returns the public URL if the message has links to this service, else null. */
  function publicUrlOf({ email }: MessageParts): string | null {
    return isPersonal(email) ? publicUrl() : null
  }

  return {
    async compose(parts, only) {
      const composed = sizeOf(parts) > largeBytes ? await composeInThread(parts, only) : null
      // Without a thread, composing here blocks other work, but the message is sent.
      if (composed === null) return composer.compose(parts, only)
      if ('error' in composed) throw new Error(composed.error)
      const { buffer, byteOffset, byteLength } = composed.message
      return Buffer.from(buffer, byteOffset, byteLength)
    },
  }
}

function sizeOf({ content }: MessageParts): number {
  const texts = (content.html?.length ?? 0) + (content.text?.length ?? 0)
  return content.attachments.reduce((sum, attachment) => sum + attachment.content.length, texts)
}
