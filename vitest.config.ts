import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'
import { compileCache } from './test/support/compile-cache.ts'
import { CostReporter, costSetup } from './test/support/cost-reporter.ts'
import { ExercisedReporter } from './test/support/exercised-reporter.ts'
import { LongTestsFirst } from './test/support/long-tests-first.ts'
import { patienceMs } from './test/support/patience.ts'
import { TallyReporter } from './test/support/tally-reporter.ts'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // They need a Postfix or a Prometheus, or write into the documents: `npm run test:postfix`,
    // `npm run test:prometheus`, `npm run docs:pictures`.
    exclude: ['test/postfix/**', 'test/prometheus/**', 'test/pictures/**'],
    setupFiles: ['test/support/shared-process.ts', ...costSetup],
    globalSetup: ['test/support/global-setup.ts'],
    provide: { faultRound: 'short' },
    reporters: ['default', new ExercisedReporter(), new TallyReporter(), new CostReporter()],
    // Files share processes: loading the service costs more than most of them. See test/support/shared-process.ts.
    pool: 'forks',
    isolate: false,
    env: compileCache,
    sequence: { sequencer: LongTestsFirst },
    // They wait for sockets and timers more than for a processor.
    maxWorkers: availableParallelism() + 2,
    testTimeout: 2 * patienceMs,
    expect: { poll: { timeout: patienceMs } },
    hookTimeout: 60_000,
  },
})
