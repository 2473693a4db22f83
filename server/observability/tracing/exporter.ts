import type { SpanExporter } from '@opentelemetry/sdk-trace'
import type { Logger } from 'pino'

type Done = Parameters<SpanExporter['export']>[1]
type Result = Parameters<Done>[0]

/** Wraps an exporter to log when the collector starts to fail and when it works again, but not each export between. */
export function tellOfFailures(
  exporter: SpanExporter,
  { endpoint, logger }: { endpoint: string; logger: Logger },
): SpanExporter {
  let failing = false

  function tell({ code, error }: Result): void {
    const failed = code !== 0
    if (failed && !failing) {
      // When a name has several addresses and no connection succeeds, the error has no message.
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
