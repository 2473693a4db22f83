import { collectDefaultMetrics, Gauge, Registry } from 'prom-client'

/** A registry with the figures of the process. Those of requests are added by the HTTP room. */
export function createRegistry(): Registry {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  return registry
}

export type ReadGauge = { name: string; help: string; labelNames?: string[]; read: (gauge: Gauge) => Promise<void> }

/** A figure that is read when it is asked for. While it cannot be, it is not a number, and the others are there. */
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
