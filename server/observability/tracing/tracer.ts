/** What is told of a span. Nothing of a body, and no secret: it leaves the machine. */
export type Attributes = Readonly<Record<string, string | number>>

export type SpanStart = {
  /** One of a few: what was done, without whose it was. */
  name: string
  /** Whether it answers another program, asks one, or does neither. */
  kind: 'server' | 'client' | 'internal'
  /** The `traceparent` of what caused it, from wherever it comes. Without one, or with one that is none, it begins a trace. */
  parent: string | null
  attributes?: Attributes
  /** Default: now. */
  startedAt?: Date
}

export type SpanEnd = {
  /** When it is known only now. Default: the name it began with. */
  name?: string
  attributes?: Attributes
  /** Why it failed, for its reader. Default: it did not. */
  error?: string
  /** Default: now. */
  endedAt?: Date
}

/** Something that takes time, as a trace shows it. */
export type Span = {
  /** To be handed to what it causes; null when it is not recorded. */
  readonly traceparent: string | null
  /** Notes that something happened in it. */
  note(name: string, attributes: Attributes): void
  end(end?: SpanEnd): void
}

/** Records what is done. Never throws, and nothing waits for it. */
export type Tracer = {
  start(start: SpanStart): Span
  /** Does `work` in `span`: it is the current one for all that happens in it, also later on. */
  within<T>(span: Span, work: () => T): T
  /** The span of what is being done; one that is not recorded where there is none. */
  current(): Span
  /** Sends what was recorded, for two seconds at most. Safe to call again; never rejects. */
  stop(): Promise<void>
}

/** A span that is not recorded. */
export const unrecorded: Span = { traceparent: null, note: () => undefined, end: () => undefined }

/** Records nothing. */
export const noTracer: Tracer = {
  start: () => unrecorded,
  within: (_span, work) => work(),
  current: () => unrecorded,
  stop: async () => undefined,
}
