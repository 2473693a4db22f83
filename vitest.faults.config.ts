import { defineConfig } from 'vitest/config'
import base from './vitest.config.ts'

/** The fault suite with its long rounds: `npm run test:faults`, or of one file `npm run test:faults -- FILE`. */
export default defineConfig({
  test: {
    ...base.test,
    include: ['test/fault/**/*.test.ts'],
    provide: { faultRound: 'long' },
    // One fault at a time: what is measured of one must not be the load of another.
    fileParallelism: false,
    // They run for long: each in a process of its own.
    isolate: true,
  },
})
