import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, expect, test } from 'vitest'
import { startArguments } from '../../scripts/support/start-command.ts'
import { scratchDirectory } from '../support/scratch.ts'
import { startService } from './service-process.ts'

const root = join(import.meta.dirname, '../..')

test('the image starts the service as npm start does', () => {
  const { options, program } = startArguments()
  const image = readFileSync(join(root, 'Dockerfile'), 'utf8')
  expect(image).toContain(`CMD ${JSON.stringify(['node', ...options, program]).replaceAll(',', ', ')}\n`)
})

const directory = mkdtempSync(join(scratchDirectory(), 'postern-start-'))
afterAll(() => rmSync(directory, { recursive: true, force: true }))

test('npm start builds the dashboard beside the service, and requests for it wait until it is built', {
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

/** Copies what `npm start` runs, with a dashboard that is built in no time, and with the service of this folder. */
function copySources(target: string): void {
  const pages = ['index.html', 'portal.html', 'mark.svg'].map((name) => `server/dashboard/${name}`)
  const scripts = ['scripts/start.ts', 'scripts/dashboard.ts', 'scripts/dashboard', 'server/lib/compile-cache.ts']
  for (const name of ['package.json', 'package-lock.json', ...scripts, ...pages]) {
    cpSync(join(root, name), join(target, name), { recursive: true })
  }
  for (const name of ['contract', 'server/dashboard/portal']) mkdirSync(join(target, name))
  writeFileSync(join(target, 'server/dashboard/main.tsx'), "document.title = 'Postern'")
  writeFileSync(join(target, 'server/dashboard/portal/main.tsx'), "document.title = 'Webhooks'")
  const service = pathToFileURL(join(root, 'server/run-service.ts'))
  writeFileSync(join(target, 'server/run-service.ts'), `export { runService } from '${service}'`)
  symlinkSync(join(root, 'node_modules'), join(target, 'node_modules'), 'junction')
}
