import { skipWithout } from './support/optional-tool.ts'
import { isThere, run } from './support/run.ts'

/* A real Prometheus reads the metrics, the queries of the dashboard for Grafana and the rules for alerts. */

if (!(await isThere('prometheus', '--version')) || !(await isThere('promtool', '--version'))) {
  skipWithout('Prometheus with promtool', { judge: 'a real Prometheus' })
} else {
  const vitest = ['node_modules/vitest/vitest.mjs', 'run', '--config', 'vitest.prometheus.config.ts']
  await run(process.execPath, vitest).catch((error: Error) => {
    process.stderr.write(`${error.message}\n`)
    process.exitCode = 1
  })
}
