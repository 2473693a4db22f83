import { collectDefaultMetrics, Gauge, Registry } from 'prom-client'

/** Creates a registry with the metrics of the process. Other rooms add their own. */
export function createRegistry(): Registry {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  return registry
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
