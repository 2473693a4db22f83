/*
 * The protocol between the service and a rendering process: frames over two pipes, each with its length first. Texts
 * are written as UTF-8 rather than as JSON, which would take longer to write and to read than they take to render.
 */

/** The tasks of a rendering process. It runs a task on the content of a request, once for each item. */
const tasks = ['render', 'compile', 'check', 'mjml'] as const

export type Task = (typeof tasks)[number]

export type RenderRequest = {
  task: Task
  /** JSON in UTF-8. */
  content: Buffer
  /** One JSON object in UTF-8 for each result. */
  items: readonly Buffer[]
  limits: BatchLimits
}

/** The limits of a request as a whole. The first item is worked on in any case; the next ones until one is reached. */
export type BatchLimits = {
  /** Milliseconds from when the first item begins. */
  timeMs: number
  /** Of all texts of the results. UTF-16 code units. */
  outputLength: number
}

/** The result of one item: texts, or the reason why there are none. */
export type RenderResult = { ok: true; texts: (string | null)[] } | { ok: false; reason: string }

const lengthBytes = 4
const none = 0xffff_ffff

/** Returns the frame of a request. */
export function writeRequest({ task, content, items, limits }: RenderRequest): Buffer {
  return frameOf(tasks.indexOf(task), [Buffer.from(JSON.stringify(limits)), content, ...items])
}

/** Reads a request without its length. */
export function readRequest(body: Buffer): RenderRequest {
  const [limits, content = noBytes, ...items] = partsOf(body)
  return {
    task: tasks[body[0] ?? 0] ?? 'render',
    limits: JSON.parse((limits ?? noBytes).toString('utf8')),
    content: content ?? noBytes,
    items: items.map((item) => item ?? noBytes),
  }
}

const noBytes = Buffer.alloc(0)

/** Returns the frame of a result. */
export function writeResult(result: RenderResult): Buffer {
  const texts = result.ok ? result.texts : [result.reason]
  return frameOf(
    result.ok ? 1 : 0,
    texts.map((text) => (text === null ? null : Buffer.from(text))),
  )
}

/** The kind of a frame in place of a result: a limit of the request was reached, and no result follows. */
const endKind = 2

/** Returns the frame that ends the results of a request before the last item. */
export function writeEnd(): Buffer {
  return frameOf(endKind, [])
}

/** Reads a result without its length. Null: the limits of the request leave the items from here on. */
export function readResult(body: Buffer): RenderResult | null {
  if (body[0] === endKind) return null
  const texts = partsOf(body).map((part) => part?.toString('utf8') ?? null)
  return body[0] === 1 ? { ok: true, texts } : { ok: false, reason: texts[0] ?? '' }
}

function frameOf(kind: number, parts: readonly (Buffer | null)[]): Buffer {
  const bytes = parts.reduce((sum, part) => sum + lengthBytes + (part?.length ?? 0), 1)
  const frame = Buffer.allocUnsafe(lengthBytes + bytes)
  let at = frame.writeUInt32LE(bytes, 0)
  at = frame.writeUInt8(kind, at)
  for (const part of parts) {
    at = frame.writeUInt32LE(part?.length ?? none, at)
    if (part !== null) at += part.copy(frame, at)
  }
  return frame
}

/** Returns the parts of a body, which share its memory. */
function partsOf(body: Buffer): (Buffer | null)[] {
  const parts: (Buffer | null)[] = []
  let at = 1
  while (at < body.length) {
    const length = body.readUInt32LE(at)
    at += lengthBytes
    parts.push(length === none ? null : body.subarray(at, at + length))
    if (length !== none) at += length
  }
  return parts
}

/** Collects bytes and returns the bodies of the frames that are complete. */
export function createFrameReader(): (chunk: Buffer) => Buffer[] {
  let chunks: Buffer[] = []
  let length = 0
  return (chunk) => {
    chunks.push(chunk)
    length += chunk.length
    const bodies: Buffer[] = []
    for (;;) {
      const wanted = lengthOf(chunks, length)
      if (wanted === null || length < wanted) return bodies
      const all = chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks)
      bodies.push(all.subarray(lengthBytes, wanted))
      chunks = [all.subarray(wanted)]
      length -= wanted
    }
  }
}

/** The bytes of the first frame, with its length. Null: the length is not there yet. */
function lengthOf(chunks: Buffer[], length: number): number | null {
  if (length < lengthBytes) return null
  const [first = noBytes] = chunks
  if (first.length >= lengthBytes) return lengthBytes + first.readUInt32LE(0)
  const joined = Buffer.concat(chunks)
  chunks.splice(0, chunks.length, joined)
  return lengthBytes + joined.readUInt32LE(0)
}
