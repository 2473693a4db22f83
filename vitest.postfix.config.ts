import { defineConfig } from 'vitest/config'
import base from './vitest.config.ts'

/** With a real Postfix: `npm run test:postfix`. */
export default defineConfig({ test: { ...base.test, include: ['test/postfix/**/*.test.ts'], exclude: [] } })
