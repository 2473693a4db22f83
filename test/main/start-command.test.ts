import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { startArguments } from '../../scripts/support/start-command.ts'
import { scratchDirectory } from '../support/scratch.ts'
import { startService } from './service-process.ts'

const root = join(import.meta.dirname, '../..')

test('starts the service in the image as npm start does', () => {
  const { options, program } = startArguments()
  const image = readFileSync(join(root, 'Dockerfile'), 'utf8')
  expect(image).toContain(`CMD ${JSON.stringify(['node', ...options, program]).replaceAll(',', ', ')}\n`)
})

const directory = mkdtempSync(join(scratchDirectory(), 'postern-start-'))
afterAll(() => rmSync(directory, { recursive: true, force: true }))

test('npm start builds the dashboard beside the service, which shows it when it is built', {
  timeout: 60_000,
}, async () => {
  copySources(directory)
  await using service = await startService(
    { DATA_DIR: join(directory, 'data') },
    { directory, program: 'scripts/start.ts' },
  )
  const page = await fetch(`${service.url}/app/sign-in`)

  expect(page.status).toBe(200)
  expect(service.greeting).toContain('The dashboard is being built.')
  expect(existsSync(join(directory, 'server/dashboard/built/index.html'))).toBe(true)

  service.child.kill('SIGTERM')
  expect(await service.exit).toEqual({ code: 0, signal: null })
})

/** Copies the sources of the service, with a dashboard that is built in no time. */
function copySources(target: string): void {
  const screens = join(root, 'server/dashboard')
  for (const name of ['package.json', 'package-lock.json', 'contract', 'openapi', 'server', 'scripts']) {
    cpSync(join(root, name), join(target, name), { recursive: true, filter: (path) => !path.startsWith(screens) })
  }
  for (const name of ['index.html', 'portal.html', 'mark.svg']) {
    cpSync(join(screens, name), join(target, 'server/dashboard', name))
  }
  mkdirSync(join(target, 'server/dashboard/portal'))
  writeFileSync(join(target, 'server/dashboard/main.tsx'), "document.title = 'Postern'")
  writeFileSync(join(target, 'server/dashboard/portal/main.tsx'), "document.title = 'Webhooks'")
  symlinkSync(join(root, 'node_modules'), join(target, 'node_modules'), 'junction')
}
