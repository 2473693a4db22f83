import { defineConfig } from 'vitest/config'
import { TallyReporter } from './test/support/tally-reporter.ts'
import base from './vitest.config.ts'

/** Makes the pictures in the documents: `npm run docs:pictures`. */
export default defineConfig({
  test: {
    ...base.test,
    include: ['test/pictures/**/*.test.ts'],
    exclude: [],
    reporters: ['default', new TallyReporter()],
  },
})
