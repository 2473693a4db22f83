import { ApiError, errorOf, headersOf, type Result, type Scope } from './client.ts'

export type LiveEvent = Result<'GET /v1/events/:id'>

/** How a stream is doing. `connecting`: it is opened, or opened again after a break. */
export type LiveState = 'connecting' | 'open'

type Options = {
  scope: Scope
  /** Default: all types. */
  type: string | undefined
  /** The id of the last event that was seen. Default: the stream begins now. */
  after: string | null
  signal: AbortSignal
  onEvent: (event: LiveEvent) => void
  /** Called with the last id that came, also of no event. */
  onId: (id: string) => void
  onState: (state: LiveState) => void
}

const firstPauseMs = 1_000
const longestPauseMs = 30_000
/** The service sends something every 15 seconds. A connection that is silent for longer is dead. */
const silenceMs = 40_000

/**
 * Follows events until `signal` aborts. After a break it goes on after the last event. Not an `EventSource`, which cannot
 * send the headers of the dashboard.
 *
 * Throws an ApiError when the API refuses the stream.
 */
export async function followEvents({ scope, type, after, signal, onEvent, onId, onState }: Options): Promise<void> {
  let lastId = after
  let pauseMs = firstPauseMs
  while (!signal.aborted) {
    onState('connecting')
    try {
      const response = await open({ scope, type, lastId, signal })
      onState('open')
      for await (const { id, data } of blocksOf(response, signal)) {
        pauseMs = firstPauseMs
        if (id === null) continue
        lastId = id
        onId(id)
        if (data !== null) onEvent(JSON.parse(data))
      }
    } catch (error) {
      if (signal.aborted) return
      // The event is not kept any more: begin now.
      if (error instanceof ApiError && error.code === 'event_not_found') lastId = null
      // A permanent refusal is thrown. A lost connection, 429 and 5xx are retried: a service may be full, or stop.
      else if (error instanceof ApiError && error.status !== 429 && error.status < 500) throw error
    }
    await pause(pauseMs, signal)
    pauseMs = Math.min(2 * pauseMs, longestPauseMs)
  }
}

type Opening = { scope: Scope; type: string | undefined; lastId: string | null; signal: AbortSignal }

async function open({ scope, type, lastId, signal }: Opening): Promise<Response> {
  const query = type === undefined ? '' : `?type=${encodeURIComponent(type)}`
  const headers = headersOf(scope)
  if (lastId !== null) headers['Last-Event-ID'] = lastId
  const response = await fetch(`/v1/events/stream${query}`, { headers, signal })
  if (!response.ok) throw await errorOf(response)
  return response
}

type Block = { id: string | null; data: string | null }

/** Reads server-sent events. Source: WHATWG HTML §9.2.6, as far as this service sends them. */
async function* blocksOf(response: Response, signal: AbortSignal): AsyncGenerator<Block> {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
  if (reader === undefined) return
  let rest = ''
  try {
    while (!signal.aborted) {
      const { value, done } = await withinSilence(reader.read())
      if (done) return
      const blocks = (rest + value).split('\n\n')
      rest = blocks.pop() ?? ''
      for (const block of blocks) yield { id: fieldOf(block, 'id'), data: fieldOf(block, 'data') }
    }
  } finally {
    await reader.cancel().catch(() => undefined)
  }
}

function fieldOf(block: string, name: string): string | null {
  const line = block.split('\n').find((one) => one.startsWith(`${name}: `))
  return line === undefined ? null : line.slice(name.length + 2)
}

/** Throws when nothing comes for too long. */
async function withinSilence<T>(read: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const silence = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('the stream is silent')), silenceMs)
  })
  return Promise.race([read, silence]).finally(() => clearTimeout(timer))
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms)
    signal.addEventListener('abort', () => {
      clearTimeout(timer)
      resolve()
    })
  })
}
