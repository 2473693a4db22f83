import { type DestinationStream, type Logger, pino } from 'pino'
import { printable } from '../lib/printable.ts'
import { maskSecrets } from '../secrets/masking.ts'

export type LoggerOptions = {
  /** The lowest level that is logged, or `silent`. */
  level: string
  /** The stream for the lines. Default: standard output. */
  destination?: DestinationStream
}

/**
 * Creates a logger that writes one JSON object per line. API keys, webhook secrets and passwords in URLs are masked
 * anywhere in the line: in messages, fields and stack traces.
 */
export function createLogger({ level, destination }: LoggerOptions): Logger {
  return pino(
    {
      level,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: errorFields },
      hooks: { streamWrite: harmless },
    },
    destination,
  )
}

/** Returns a log line without secrets and without control characters for terminals. */
function harmless(line: string): string {
  return `${printable(maskSecrets(line).trimEnd())}\n`
}

/** Returns the fields of an error to log. Not all of them: an error of a connection pool holds the whole connection. */
function errorFields(thrown: unknown): unknown {
  if (!(thrown instanceof Error)) return thrown
  return {
    type: thrown.name,
    message: thrown.message,
    ...('code' in thrown && { code: thrown.code }),
    stack: thrown.stack,
    ...(thrown.cause !== undefined && { cause: errorFields(thrown.cause) }),
  }
}
