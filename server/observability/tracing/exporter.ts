import type { SpanExporter } from '@opentelemetry/sdk-trace'
import type { Logger } from 'pino'

type Done = Parameters<SpanExporter['export']>[1]
type Result = Parameters<Done>[0]

/** Logs when the collector stops taking spans, and when it takes them again; not every export between. */
export function tellOfFailures(
  exporter: SpanExporter,
  { endpoint, logger }: { endpoint: string; logger: Logger },
): SpanExporter {
  let failing = false

  function tell({ code, error }: Result): void {
    const failed = code !== 0
    if (failed && !failing) {
      // A name with several addresses, none of which answers, fails without a message.
      const reason = error?.message || (error && 'code' in error ? error.code : 'no reason was given')
      logger.warn(
        `traces cannot be sent to ${endpoint} (${reason}) and are dropped; check OTEL_EXPORTER_OTLP_ENDPOINT and that the collector takes OTLP over HTTP there`,
      )
    }
    if (!failed && failing) logger.info(`traces are sent to ${endpoint} again`)
    failing = failed
  }

  return {
    export(spans, done) {
      exporter.export(spans, (result) => {
        tell(result)
        done(result)
      })
    },
    shutdown: () => exporter.shutdown(),
  }
}
