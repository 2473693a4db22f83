import { Worker } from 'node:worker_threads'
import type { Clock } from '../../clock.ts'
import { type Composer, createComposer, type MessageParts } from './compose.ts'
import { createMailTokens } from './tokens.ts'

export type ComposingOptions = {
  /** That the tokens in messages are made with. */
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

/** Encoding, hashing and signing of a longer content takes tens of milliseconds and more. Bytes, about. */
const largeBytes = 262_144

/**
 * A composer that composes large messages in a thread, so that others have their turn meanwhile. The attachments of
 * those are taken over: they are empty afterwards.
 */
export function createMailComposer({ key, publicUrl, clock }: ComposingOptions): Composer {
  const composer = createComposer({ tokens: createMailTokens(key), publicUrl, clock })

  return {
    async compose(parts, only) {
      if (sizeOf(parts) <= largeBytes) return composer.compose(parts, only)
      return composeAside({ key, publicUrl: publicUrlOf(parts), signedAt: clock.now(), parts, only })
    },
  }

  /** It is not asked where no link needs it. */
  function publicUrlOf({ email }: MessageParts): string | null {
    return email.audienceId !== null || email.trackOpens || email.trackClicks ? publicUrl() : null
  }
}

function sizeOf({ content }: MessageParts): number {
  const texts = (content.html?.length ?? 0) + (content.text?.length ?? 0)
  return content.attachments.reduce((sum, attachment) => sum + attachment.content.length, texts)
}

async function composeAside(task: ComposingTask): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>()
  // Memory that is not shared with anything else can be handed over: that of a Buffer that has all of it.
  const own = task.parts.content.attachments
    .map(({ content }) => content)
    .filter((content) => content.length > 0 && content.length === content.buffer.byteLength)
  const thread = new Worker(new URL('./compose-thread.ts', import.meta.url), {
    workerData: task,
    transferList: [...new Set(own.map((content) => content.buffer as ArrayBuffer))],
    execArgv: [],
  })
  thread.once('message', resolve)
  thread.once('error', reject)
  thread.once('exit', () => reject(new Error('the thread that composed the message ended without one')))
  const { buffer, byteOffset, byteLength } = await promise
  return Buffer.from(buffer, byteOffset, byteLength)
}
