import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type ServiceProcess, startService } from '../main/service-process.ts'
import { scratchDirectory } from '../support/scratch.ts'

let parent: string
let rejecting: ServiceProcess
let throwing: ServiceProcess

beforeAll(async () => {
  parent = await mkdtemp(join(scratchDirectory(), 'postern-faults-'))
  const started = await Promise.all([startFaulty('rejecting'), startFaulty('throwing')])
  rejecting = started[0]
  throwing = started[1]
})

afterAll(async () => {
  await rejecting?.[Symbol.asyncDispose]()
  await throwing?.[Symbol.asyncDispose]()
  await rm(parent, { recursive: true, force: true })
})

function startFaulty(name: string): Promise<ServiceProcess> {
  const env = { DATA_DIR: join(parent, name), LOG_LEVEL: 'error' }
  return startService(env, { nodeArgs: ['--import', import.meta.resolve('./faulty-module.ts')] })
}

async function rejectionsOf({ url }: ServiceProcess): Promise<string | undefined> {
  const metrics = await (await fetch(`${url}/metrics`)).text()
  return /^postern_unhandled_rejections_total (\d+)$/m.exec(metrics)?.[1]
}

function logged({ lines }: ServiceProcess): Record<string, unknown>[] {
  return lines.filter((line) => line.startsWith('{')).map((line) => JSON.parse(line))
}

test('a rejection that nothing handles is logged and counted, and the process goes on', async () => {
  const service = rejecting
  expect(await rejectionsOf(service)).toBe('0')
  service.child.kill('SIGUSR2')
  await expect.poll(() => rejectionsOf(service)).toBe('1')
  service.child.kill('SIGUSR2')
  await expect.poll(() => rejectionsOf(service)).toBe('2')
  await expect.poll(() => logged(service)).toHaveLength(2)
  expect(logged(service)[0]).toMatchObject({
    level: 'fatal',
    msg: 'a rejected promise was not handled; the process goes on',
    err: { message: 'rejected for the test', stack: expect.stringContaining('faulty-module.ts') },
  })
  service.child.kill('SIGTERM')
  expect(await service.exit).toEqual({ code: 0, signal: null })
})

test('an exception that nothing catches is logged, and the process ends in order, with its database', async () => {
  const service = throwing
  service.child.kill('SIGWINCH')
  // Not by a signal, nor with the database left behind: both are what stopping in order does.
  expect(await service.exit).toEqual({ code: 1, signal: null })
  expect(await service.stderr).toBe('')
  expect(logged(service)).toMatchObject([
    {
      level: 'fatal',
      msg: 'an exception was not caught; the process ends',
      err: { message: 'thrown for the test', stack: expect.stringContaining('faulty-module.ts') },
    },
  ])
})
