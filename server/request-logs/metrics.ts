import { Counter, type Registry } from 'prom-client'

/** Adds the counter of requests in the request logs to `registry`. Call it once per registry. */
export function createRequestLogCounter(registry: Registry): Counter<'outcome'> {
  return new Counter({
    name: 'postern_request_logs_total',
    help: 'Requests for the request logs, by outcome: written, or dropped because they came too fast or could not be written.',
    labelNames: ['outcome'] as const,
    registers: [registry],
  })
}
