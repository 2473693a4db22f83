/** Attributes of a span. They leave the machine, so they must hold no part of a body and no secret. */
export type Attributes = Readonly<Record<string, string | number>>

export type SpanStart = {
  /** Name of the operation, without identifiers, so that there are only a few different names. */
  name: string
  /** `server` for handling a request, `client` for sending one, `internal` for other work. */
  kind: 'server' | 'client' | 'internal'
  /** The `traceparent` of the cause, from any source. When it is null or malformed, the span begins a new trace. */
  parent: string | null
  attributes?: Attributes
  /** Default: now. */
  startedAt?: Date
}

export type SpanEnd = {
  /** A name that is known only at the end. Default: the name from the start. */
  name?: string
  attributes?: Attributes
  /** The reason of a failure, for people. Default: no failure. */
  error?: string
  /** Default: now. */
  endedAt?: Date
}

/** An operation in a trace. */
export type Span = {
  /** The parent for operations that it causes. Null when the span is not recorded. */
  readonly traceparent: string | null
  /** Adds a span event. */
  note(name: string, attributes: Attributes): void
  end(end?: SpanEnd): void
}

/** Records spans. Never throws and never blocks. */
export type Tracer = {
  start(start: SpanStart): Span
  /** Calls `work` with `span` as the current span, also in asynchronous work that it starts. */
  within<T>(span: Span, work: () => T): T
  /** Returns the current span, or `unrecorded` when there is none. */
  current(): Span
  /** Sends the recorded spans, for at most two seconds. Safe to call again. Never rejects. */
  stop(): Promise<void>
}

/** The span that is not recorded. */
export const unrecorded: Span = { traceparent: null, note: () => undefined, end: () => undefined }

/** A tracer that records nothing. */
export const noTracer: Tracer = {
  start: () => unrecorded,
  within: (_span, work) => work(),
  current: () => unrecorded,
  stop: async () => undefined,
}
