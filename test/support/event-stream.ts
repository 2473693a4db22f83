import { request } from 'undici'
import { patienceMs } from './patience.ts'

export type StreamReader = AsyncDisposable & {
  status: number
  headers: Record<string, string | string[] | undefined>
  /** The ids that came with data, in their order. */
  ids: string[]
  events: Record<string, unknown>[]
  /** The last id that came, with data or without. */
  lastId(): string
  /** Waits until so many events have come. */
  until(count: number): Promise<string[]>
  /** Waits until the server has ended the stream, and returns whether it did so in an orderly way. */
  end(): Promise<boolean>
  close(): void
}

/** Opens a stream of server-sent events and reads it as the standard says. Source: WHATWG HTML §9.2.6. */
export async function openStream(url: string, headers: Record<string, string>): Promise<StreamReader> {
  const aborting = new AbortController()
  const { statusCode, headers: answered, body } = await request(url, { headers, signal: aborting.signal })
  const ids: string[] = []
  const events: Record<string, unknown>[] = []
  let lastId = ''
  let look = () => {}

  function take(block: string): void {
    const data: string[] = []
    for (const line of block.split('\n')) {
      if (line.startsWith('id: ')) lastId = line.slice(4)
      if (line.startsWith('data: ')) data.push(line.slice(6))
    }
    if (data.length === 0) return
    ids.push(lastId)
    events.push(JSON.parse(data.join('\n')))
    look()
  }

  const reading = (async () => {
    let rest = ''
    try {
      for await (const piece of body.setEncoding('utf8')) {
        const blocks = (rest + piece).split('\n\n')
        rest = blocks.pop() ?? ''
        for (const block of blocks) take(block)
        look()
      }
      return rest === ''
    } catch {
      return false
    }
  })()

  async function wait<T>(what: () => string, promise: Promise<T>): Promise<T> {
    const late = Promise.withResolvers<never>()
    const timer = setTimeout(() => late.reject(new Error(what())), patienceMs)
    return Promise.race([promise, late.promise]).finally(() => clearTimeout(timer))
  }

  return {
    status: statusCode,
    headers: answered,
    ids,
    events,
    lastId: () => lastId,
    until(count) {
      const { promise, resolve } = Promise.withResolvers<string[]>()
      look = () => ids.length >= count && lastId !== '' && resolve(ids)
      look()
      return wait(() => `${ids.length} of ${count} events came`, promise)
    },
    end: () => wait(() => 'the stream did not end', reading),
    close: () => aborting.abort(),
    async [Symbol.asyncDispose]() {
      aborting.abort()
      await reading
    },
  }
}
