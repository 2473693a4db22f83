import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'
import { ExercisedReporter } from './test/support/exercised-reporter.ts'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // They need a Postfix: `npm run test:postfix`.
    exclude: ['test/postfix/**'],
    globalSetup: ['test/support/global-setup.ts'],
    provide: { faultRound: 'short' },
    reporters: ['default', new ExercisedReporter()],
    // Each file has a process, so that a fault in one cannot hide in another.
    pool: 'forks',
    // They wait for sockets and timers more than for a processor.
    maxWorkers: availableParallelism() + 1,
    testTimeout: 20_000,
    hookTimeout: 60_000,
  },
})
