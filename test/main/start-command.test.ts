import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { startArguments } from '../../scripts/support/start-command.ts'

test('starts the service in the image as npm start does', () => {
  const { options, program } = startArguments()
  const image = readFileSync(join(import.meta.dirname, '../../Dockerfile'), 'utf8')
  expect(image).toContain(`CMD ${JSON.stringify(['node', ...options, program]).replaceAll(',', ', ')}\n`)
})
