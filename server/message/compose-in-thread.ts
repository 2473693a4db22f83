import type { Clock } from '../lib/clock.ts'
import { createSemaphore } from '../lib/semaphore.ts'
import { largeBytes, runInThread } from '../lib/worker-thread.ts'
import { type Composer, createComposer, isPersonal, type MessageParts } from './compose.ts'
import { createMailTokens } from './tokens.ts'

export type ComposingOptions = {
  /** The encryption key, from which the keys of the tokens are derived. */
  key: Buffer
  /** Where this service is reached from outside, without a slash at the end. */
  publicUrl: () => string
  /** Tells when a message is signed. */
  clock: Clock
}

/** What a thread is started with. */
export type ComposingTask = {
  key: Uint8Array
  /** Null: it could not be told, and the message needs none. */
  publicUrl: string | null
  signedAt: Date
  parts: MessageParts
  only: number | null
}

/** What a thread has made: the message, or why there is none. */
export type Composed = { message: Uint8Array } | { error: string }

/** Threads at once. Each takes tens of megabytes beside its message. */
const threadsAtOnce = 2

/** A composer that composes large messages in a thread, so that others have their turn meanwhile. */
export function createMailComposer({ key, publicUrl, clock }: ComposingOptions): Composer {
  const composer = createComposer({ tokens: createMailTokens(key), publicUrl, clock })
  const threads = createSemaphore(threadsAtOnce)

  /** In a thread; null: there could be none, or it came to nothing. */
  async function composeAside(parts: MessageParts, only: number | null): Promise<Composed | null> {
    const giveBack = await threads.acquire()
    try {
      const task: ComposingTask = { key, publicUrl: publicUrlOf(parts), signedAt: clock.now(), parts, only }
      return await runInThread<Composed>(new URL('./compose-thread.ts', import.meta.url), { data: task })
    } finally {
      giveBack()
    }
  }

  /** It is not asked where no link needs it. */
  function publicUrlOf({ email }: MessageParts): string | null {
    return isPersonal(email) ? publicUrl() : null
  }

  return {
    async compose(parts, only) {
      const composed = sizeOf(parts) > largeBytes ? await composeAside(parts, only) : null
      // Better that others wait than that it is not sent.
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
