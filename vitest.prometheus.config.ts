import { defineConfig } from 'vitest/config'
import base from './vitest.postfix.config.ts'

/** With a real Prometheus: `npm run test:prometheus`. */
export default defineConfig({ test: { ...base.test, include: ['test/prometheus/**/*.test.ts'] } })
