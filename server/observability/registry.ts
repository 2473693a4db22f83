import { collectDefaultMetrics, Gauge, Registry } from 'prom-client'

let processMetrics: Registry | undefined

/**
 * Creates a registry with the metrics of the process. Other rooms add their own. All registries share the metrics of
 * the process: what measures its event loop and its garbage collector cannot be stopped again.
 */
export function createRegistry(): Registry {
  if (processMetrics === undefined) {
    processMetrics = new Registry()
    collectDefaultMetrics({ register: processMetrics })
  }
  return Registry.merge([processMetrics])
}

export type ReadGauge = { name: string; help: string; labelNames?: string[]; read: (gauge: Gauge) => Promise<void> }

/**
 * Adds a gauge that is read when metrics are collected. When reading fails, a gauge without labels is NaN, one with
 * labels is absent, and other metrics are not affected.
 */
export function readGauge(registry: Registry, { read, ...configuration }: ReadGauge): void {
  new Gauge({
    ...configuration,
    registers: [registry],
    async collect() {
      this.reset()
      await read(this).catch(() => {
        if (configuration.labelNames === undefined) this.set(Number.NaN)
      })
    },
  })
}
