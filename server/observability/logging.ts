import { type DestinationStream, type Logger, pino } from 'pino'
import { printable } from '../lib/printable.ts'
import { maskSecrets } from '../secrets/masking.ts'

export type LoggerOptions = {
  /** The least severe level that is written, or `silent`. */
  level: string
  /** Where the lines go. Default: standard output. */
  destination?: DestinationStream
}

/**
 * A logger of one JSON object a line. A key, a webhook's secret or a password in a URL is masked
 * wherever it stands in the line: in a message, a field, an error's stack.
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

/** A line of the log, which is JSON, as it is written: without secrets, and with nothing a terminal would obey. */
function harmless(line: string): string {
  return `${printable(maskSecrets(line).trimEnd())}\n`
}

/** What a log line says of an error. Not all it carries: one of a connection pool has the whole connection on it. */
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
