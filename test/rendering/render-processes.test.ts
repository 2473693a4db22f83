import { execFile } from 'node:child_process'
import { cp, mkdtempDisposable, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { type RenderProcess, startRenderProcess } from '../../server/rendering/render-process.ts'
import { createRenderer, type Renderer, type RendererOptions } from '../../server/rendering/renderer.ts'

const content = { subject: 'Hello', preheader: null, html: null, text: '{{ n }}' }
const root = fileURLToPath(new URL('../..', import.meta.url))
const people = Array.from({ length: 250 }, (_, n) => ({ n }))

/** A renderer, and the processes it has started. `onStart` is called before a process gets work. */
function observed(options: RendererOptions = {}, onStart: (process: RenderProcess, index: number) => void = () => {}) {
  const started: RenderProcess[] = []
  const renderer = createRenderer({
    ...options,
    start: async (limits) => {
      const one = await startRenderProcess(limits)
      onStart(one, started.push(one) - 1)
      return one
    },
  })
  return { renderer, started }
}

async function statuses(renderer: Renderer): Promise<string[]> {
  const renderings = await renderer.render(content, people)
  return renderings.map((one) => (one.status === 'rendered' ? (one.rendered.text ?? '') : one.reason))
}

const all = people.map(({ n }) => String(n))

test('rendering processes are started when they are needed, and kept', async () => {
  const { renderer, started } = observed()
  await using _ = renderer
  expect(started).toEqual([])
  expect(await statuses(renderer)).toEqual(all)
  expect(await statuses(renderer)).toEqual(all)
  expect(started.length).toBe(1)
})

test('rendering processes share the people of one call', async () => {
  const { renderer, started } = observed({ processes: 2 })
  await using _ = renderer
  expect(await statuses(renderer)).toEqual(all)
  expect(started.length).toBe(2)
})

test('rendering processes that do not come back are ended: the person at work fails, the others are rendered', async () => {
  const { renderer, started } = observed({ personLimitMs: 400 }, ({ pid }, index) => {
    if (index === 0) process.kill(pid, 'SIGSTOP')
  })
  await using _ = renderer
  expect(await statuses(renderer)).toEqual(['Rendering takes longer than 0.4 s.', ...all.slice(1)])
  expect(started.map((one) => one.isAlive())).toEqual([false, true])
})

test('rendering processes that somebody ends cost nobody their message', async () => {
  const { renderer, started } = observed({}, ({ pid }, index) => {
    if (index === 0) process.kill(pid, 'SIGKILL')
  })
  await using _ = renderer
  expect(await statuses(renderer)).toEqual(all)
  expect(started.length).toBe(2)
})

test('rendering processes without memory for one person render for the others', async () => {
  const { renderer, started } = observed({ heapMebibytes: 16, personLimitMs: 30_000 })
  await using _ = renderer
  const text = '{% if hostile %}{% assign list = (1..3900000) %}{% endif %}fine'
  const renderings = await renderer.render({ ...content, text }, [{}, { hostile: true }, {}])
  expect(renderings.map((one) => (one.status === 'rendered' ? one.rendered.text : one.reason))).toEqual([
    'fine',
    'Rendering takes too much memory.',
    'fine',
  ])
  // It is tried twice, since a process can end for other reasons.
  expect(started.length).toBe(3)
})

test('rendering processes that ended while they were idle are replaced', async () => {
  const { renderer, started } = observed()
  await using _ = renderer
  expect(await statuses(renderer)).toEqual(all)
  await started[0]?.stop()
  expect(await statuses(renderer)).toEqual(all)
  expect(started.length).toBe(2)
})

test.each([{ timeMs: 0 }, { outputLength: 0 }])(
  'rendering processes try one person in a batch that has no room: %j',
  async (limits) => {
    const { renderer, started } = observed()
    await using _ = renderer
    expect((await renderer.renderFirst(content, people, limits)).length).toBe(1)
    expect(await statuses(renderer)).toEqual(all)
    expect(started.length).toBe(1)
  },
)

test('rendering processes that end cost no batch its first person, however little time it has', async () => {
  const { renderer } = observed({}, ({ pid }, index) => {
    if (index === 0) process.kill(pid, 'SIGKILL')
  })
  await using _ = renderer
  const rendered = { subject: 'Hello', html: null, text: '0' }
  expect(await renderer.renderFirst(content, people, { timeMs: 0 })).toEqual([{ status: 'rendered', rendered }])
})

test('rendering processes leave the rest of a batch alone whose time is up after a person who was too slow', async () => {
  const stop = ({ pid }: RenderProcess) => void process.kill(pid, 'SIGSTOP')
  const { renderer, started } = observed({ personLimitMs: 100 }, stop)
  await using _ = renderer
  expect(await renderer.renderFirst(content, people, { timeMs: 50 })).toEqual([
    { status: 'failed', reason: 'Rendering takes longer than 0.1 s.' },
  ])
  expect(started.length).toBe(1)
})

test('rendering processes get those whom the limits of a batch left in the next one, until everybody is rendered', async () => {
  const { renderer } = observed({ batchLimitMs: 0 })
  await using _ = renderer
  expect(await statuses(renderer)).toEqual(all)
})

test('rendering processes end with the renderer, which then rejects', async () => {
  const { renderer, started } = observed()
  await statuses(renderer)
  await renderer[Symbol.asyncDispose]()
  expect(started.map((one) => one.isAlive())).toEqual([false])
  await expect(statuses(renderer)).rejects.toThrow('The renderer was stopped.')
})

test('rendering processes end while they work when the renderer ends', async () => {
  const working = Promise.withResolvers<void>()
  const { renderer } = observed({}, ({ pid }) => {
    process.kill(pid, 'SIGSTOP')
    working.resolve()
  })
  const result = statuses(renderer)
  await Promise.all([
    expect(result).rejects.toThrow('The renderer was stopped.'),
    working.promise.then(() => renderer[Symbol.asyncDispose]()),
  ])
})

test('rendering processes that cannot start reject with what they say', async () => {
  await expect(startRenderProcess({ heapMebibytes: 1, startLimitMs: 20_000 })).rejects.toThrow(
    /^A rendering process did not start \(ended\): /,
  )
})

test('a rendering process starts where the folder of the packages is a link', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'postern-linked-'))
  const room = join(folder.path, 'server/rendering')
  await cp(join(root, 'server/rendering'), room, { recursive: true })
  await writeFile(join(folder.path, 'package.json'), '{"type":"module"}')
  await symlink(join(root, 'node_modules'), join(folder.path, 'node_modules'))
  const start = `
    const { startRenderProcess } = await import(${JSON.stringify(pathToFileURL(join(room, 'render-process.ts')))})
    const own = await startRenderProcess({ heapMebibytes: 64, startLimitMs: 20_000 })
    console.log(own.isAlive())
    await own.stop()
  `
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', start])
  expect(stdout).toBe('true\n')
})

test('a rendering process may read its program, and nothing else', async () => {
  const own = await startRenderProcess({ heapMebibytes: 64, startLimitMs: 20_000 })
  await own.stop()
  const probe = `
    import { readFileSync } from 'node:fs'
    const tries = {
      read: () => readFileSync(${JSON.stringify(join(root, 'tsconfig.json'))}),
      write: async () => (await import('node:fs')).writeFileSync('/tmp/x', ''),
      run: async () => (await import('node:child_process')).execFileSync('true'),
      thread: async () => new (await import('node:worker_threads')).Worker('', { eval: true }),
    }
    const codes = {}
    for (const [name, attempt] of Object.entries(tries)) {
      try { await attempt(); codes[name] = 'allowed' } catch (error) { codes[name] = error.code }
    }
    console.log(JSON.stringify({ codes, environment: Object.keys(process.env) }))
  `
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [...own.flags, '--input-type=module', '--eval', probe],
    { env: {} },
  )
  expect(JSON.parse(stdout)).toEqual({
    codes: Object.fromEntries(['read', 'write', 'run', 'thread'].map((name) => [name, 'ERR_ACCESS_DENIED'])),
    environment: [],
  })
})
