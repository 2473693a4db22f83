import { Counter, Histogram, type Registry } from 'prom-client'

export type AnsweredRequest = {
  method: string
  /** The path in the contract, such as `/v1/webhooks/:id`, so that the number of label values is bounded. */
  route: string
  /** `aborted` when the client disconnected before the response was complete. */
  status: number | 'aborted'
  durationMs: number
}

export type RequestMetrics = {
  onAnswered(request: AnsweredRequest): void
}

/** Adds the metrics of requests to `registry`. Call it once per registry. */
export function createRequestMetrics(registry: Registry): RequestMetrics {
  const registers = [registry]
  const requests = new Counter({
    name: 'postern_http_requests_total',
    help: 'Requests answered by this process.',
    labelNames: ['method', 'route', 'status'] as const,
    registers,
  })
  const duration = new Histogram({
    name: 'postern_http_request_duration_seconds',
    help: 'Seconds from the arrival of a request to the end of its answer.',
    labelNames: ['method', 'route'] as const,
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
    registers,
  })
  return {
    onAnswered({ method, route, status, durationMs }) {
      requests.inc({ method, route, status })
      duration.observe({ method, route }, durationMs / 1000)
    },
  }
}
