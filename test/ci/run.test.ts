import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterEach, beforeEach, expect, test } from 'vitest'

/* `.ci/run` with an npm that does nothing but what a case says: how it ends. */

let directory: string

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'postern-ci-'))
})
afterEach(() => rm(directory, { recursive: true, force: true }))

/** Runs it with these shell commands in place of the npm scripts, and returns its exit code and last lines. */
async function runCi(scripts: Record<string, string>): Promise<{ code: number; lines: string[] }> {
  await mkdir(join(directory, '.ci'))
  await mkdir(join(directory, 'bin'))
  await writeFile(join(directory, '.ci', 'run'), await readFile('.ci/run'))
  const cases = Object.entries(scripts).map(([name, command]) => `*" ${name} "*) ${command} ;;\n`)
  // Not one that the machine has: nothing is installed here.
  for (const name of ['apt-get', 'debconf-set-selections', 'sudo']) await addProgram(name, 'exit 0')
  await addProgram('npm', `case " $* " in\n${cases.join('')}\nesac`)
  const child = spawn('bash', [join(directory, '.ci', 'run')], {
    env: { PATH: `${join(directory, 'bin')}:${process.env.PATH}` },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [output, [code]] = await Promise.all([text(child.stdout), once(child, 'exit')])
  return { code, lines: output.trimEnd().split('\n') }
}

async function addProgram(name: string, script: string): Promise<void> {
  const path = join(directory, 'bin', name)
  await writeFile(path, `#!/usr/bin/env bash\n${script}\n`)
  await chmod(path, 0o755)
}

const tally = (counts: string) => `echo '${counts}' >> "$TEST_TALLY"`

test('.ci/run closes with the tests of all suites together, alone on the last line', async () => {
  const { code, lines } = await runCi({ test: tally('4400 0 3'), 'test:postfix': tally('12 0 0') })
  expect(code).toBe(0)
  expect(lines.at(-1)).toBe('4412 passed, 0 failed, 3 skipped')
  expect(lines.at(-2)).toMatch(/^steps: \d+ passed, 0 failed$/)
})

test('.ci/run names the judges that were skipped before that line', async () => {
  const skip = (judge: string) => `echo '${judge}' >> "$SKIPPED_JUDGES"`
  const { code, lines } = await runCi({
    test: tally('5 0 0'),
    'test:postfix': skip('a real mail server (needs Postfix)'),
    'test:clients:go': skip('the Go client (needs Go)'),
  })
  expect(code).toBe(0)
  expect(lines.slice(-2)).toEqual([
    'skipped judges: a real mail server (needs Postfix); the Go client (needs Go)',
    '5 passed, 0 failed, 0 skipped',
  ])
})

test('.ci/run fails when the suite fails, runs no more, and closes with what failed', async () => {
  const { code, lines } = await runCi({ test: `${tally('4398 2 3')}; exit 1`, 'test:postfix': tally('12 0 0') })
  expect(code).toBe(1)
  expect(lines.at(-1)).toBe('4398 passed, 2 failed, 3 skipped')
})

test('.ci/run fails when a judge fails, whatever the tests say', async () => {
  const { code, lines } = await runCi({ test: tally('4400 0 0'), 'test:schemathesis': 'exit 3' })
  expect(code).toBe(3)
  expect(lines.at(-1)).toBe('4400 passed, 0 failed, 0 skipped')
})

test('.ci/run fails when a client fails, which is tried beside the other judges, and shows what it said', async () => {
  const { code, lines } = await runCi({
    test: tally('4400 0 0'),
    'test:clients:go': 'echo It does not compile.; exit 4',
  })
  expect(code).toBe(4)
  expect(lines).toContain('It does not compile.')
  expect(lines).not.toContain('== a Rust client from the published spec')
  expect(lines.at(-1)).toBe('4400 passed, 0 failed, 0 skipped')
})

test('.ci/run shows what the clients said in one piece, after the judges beside them', async () => {
  const { lines } = await runCi({
    test: tally('4400 0 0'),
    'test:clients:python': `touch ${directory}/begun; echo Python is right.`,
    'test:schemathesis': `until [ -e ${directory}/begun ]; do sleep 0.01; done; echo Schemathesis is right.`,
  })
  expect(lines.filter((line) => line.endsWith('is right.'))).toEqual([
    'Schemathesis is right.',
    'Python is right.',
    'Schemathesis is right.',
  ])
})

test('.ci/run ends the clients when a judge fails beside them', async () => {
  const pid = join(directory, 'pid')
  const { code } = await runCi({
    test: tally('4400 0 0'),
    'test:clients:python': `echo $$ > ${pid}; exec sleep 600`,
    'test:schemathesis': `until [ -s ${pid} ]; do sleep 0.01; done; exit 3`,
  })
  expect(code).toBe(3)
  const isAlive = (id: number) => {
    try {
      return process.kill(id, 0)
    } catch {
      return false
    }
  }
  const client = Number(await readFile(pid, 'utf8'))
  await expect.poll(() => isAlive(client)).toBe(false)
})

test('.ci/run fails when no suite tells of a test', async () => {
  const { code, lines } = await runCi({})
  expect(code).toBe(1)
  expect(lines.at(-1)).toBe('No test has run: the suites told of none.')
})
