import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/global-setup.ts'],
    // Each file has a process, so that a fault in one cannot hide in another.
    pool: 'forks',
    testTimeout: 20_000,
    hookTimeout: 60_000,
  },
})
