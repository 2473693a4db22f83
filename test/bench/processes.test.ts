import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { createProcesses, type Processes } from '../../scripts/bench/processes.ts'

let processes: Processes
beforeEach(() => {
  processes = createProcesses()
})
afterEach(() => processes[Symbol.asyncDispose]())

function startParrot(options: { usualLine?: RegExp } = {}) {
  return processes.start({ name: 'parrot', file: import.meta.resolve('./parrot.ts'), ...options })
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

test('a program answers what it is asked, each question its own answer', async () => {
  const parrot = await startParrot()
  const answers = await Promise.all(['one', 'two', 'three'].map((text) => parrot.ask('say', text, z.string())))
  expect(answers).toEqual(['one', 'two', 'three'])
})

describe('what goes wrong is told', () => {
  test('an error of a program is told', async () => {
    const parrot = await startParrot()
    await expect(parrot.ask('fail', null, z.null())).rejects.toThrow('it fell off its perch')
  })

  test('a question that a program does not understand is told', async () => {
    const parrot = await startParrot()
    await expect(parrot.ask('say', 7, z.string())).rejects.toThrow('expected string')
    await expect(parrot.ask('sing', null, z.string())).rejects.toThrow('there is no "sing"')
  })

  test('the end of a program is told, with what it wrote', async () => {
    const parrot = await startParrot()
    await expect(parrot.ask('die', null, z.null())).rejects.toThrow(/ended with code 3\n.*this parrot is no more/)
    expect(processes.complaints()).toEqual(['parrot: this parrot is no more'])
  })

  test('what a program writes is told, but for what it usually writes', async () => {
    const parrot = await startParrot({ usualLine: /^Good morning/ })
    await parrot.ask('write', 'Good morning, Polly\n\nthe cage is open\n', z.undefined())
    await vi.waitUntil(() => processes.complaints().length > 0)
    expect(processes.complaints()).toEqual(['parrot: the cage is open'])
  })

  test('a program that did not start is told', async () => {
    const starting = processes.start({ name: 'nobody', file: '/no/such/file.ts' })
    await expect(starting).rejects.toThrow(/"nobody" ended with code 1(.|\n)*\/no\/such\/file.ts/)
  })
})

test('what programs of one name used is added up, also when they have ended', async () => {
  const first = await startParrot()
  await first.ask('work', 150, z.number())
  await first.stop()
  const second = await startParrot()
  await second.ask('work', 150, z.number())
  const memory = await second.memory()
  const usage = (await processes.usage()).get('parrot')
  // The starts of both are in it too.
  expect(usage?.cpuSeconds).toBeGreaterThanOrEqual(0.3)
  expect(usage?.peakBytes).toBeGreaterThan(2 ** 23)
  expect(usage?.peakBytes).toBeGreaterThanOrEqual(memory)
})

test('no program stays behind when all are ended', async () => {
  const pids = [await startParrot(), await startParrot()].map(({ pid }) => pid)
  await processes[Symbol.asyncDispose]()
  expect(pids.map(isAlive)).toEqual([false, false])
  await expect(startParrot()).rejects.toThrow('the benchmark is ending')
})

test('no program stays behind when the benchmark is killed', async () => {
  const owner = spawn(process.execPath, [fileURLToPath(import.meta.resolve('./parrot-owner.ts'))], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [line] = await once(owner.stdout, 'data')
  const pid = Number(line)
  expect(isAlive(pid)).toBe(true)
  owner.kill('SIGKILL')
  await vi.waitUntil(() => !isAlive(pid), { timeout: 10_000 })
})
