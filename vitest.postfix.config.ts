import { defineConfig } from 'vitest/config'
import { TallyReporter } from './test/support/tally-reporter.ts'
import base from './vitest.config.ts'

/** With a real Postfix: `npm run test:postfix`. A part of the tests, from which the contract is not judged. */
export default defineConfig({
  test: {
    ...base.test,
    include: ['test/postfix/**/*.test.ts'],
    exclude: [],
    reporters: ['default', new TallyReporter()],
  },
})
