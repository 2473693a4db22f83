import { Counter, type Registry } from 'prom-client'
import type { ProcessFaults } from './process-faults.ts'

/** Adds the metrics of `faults` to `registry`. Call it once per registry. */
export function createProcessFaultMetrics(registry: Registry, faults: Pick<ProcessFaults, 'rejections'>): void {
  let shown = 0
  new Counter({
    name: 'postern_unhandled_rejections_total',
    help: 'Rejected promises that nothing in this process handled: each is a fault of the service, and in its log.',
    registers: [registry],
    collect() {
      this.inc(faults.rejections - shown)
      shown = faults.rejections
    },
  })
}
