import type { Logger } from 'pino'
import type { TracingConfig } from './settings.ts'
import { noTracer, type Tracer } from './tracer.ts'

/** Starts the tracer of `config`; null: none. Loads the OpenTelemetry packages only when needed. */
export async function startTracer(config: TracingConfig | null, logger: Logger): Promise<Tracer> {
  if (config === null) return noTracer
  const { createOpenTelemetryTracer } = await import('./open-telemetry.ts')
  return createOpenTelemetryTracer({ ...config, logger })
}
