import { spawn } from 'node:child_process'
import { availableParallelism } from 'node:os'

/*
 * Runs all checks of the source, the spec and the documents, as many at once as there are cores. Prints which failed
 * and why. Each check is an npm script, so it can also be run alone.
 */

const checks = [
  'types',
  'docs:build',
  'knip',
  'spectral',
  'redocly',
  'lint',
  'rooms',
  'format:check',
  'openapi:check',
  'openapi:breaking',
  'docs:check',
]

type Result = { name: string; passed: boolean; output: string; seconds: string }

function run(name: string): Promise<Result> {
  const start = performance.now()
  const env = { ...process.env, FORCE_COLOR: '0', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' }
  const child = spawn('npm', ['run', '--silent', name], { env, shell: process.platform === 'win32' })
  let output = ''
  const keep = (chunk: Buffer) => {
    output += chunk
  }
  child.stdout.on('data', keep)
  child.stderr.on('data', keep)
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code) => {
      const seconds = ((performance.now() - start) / 1000).toFixed(1)
      resolve({ name, passed: code === 0, output, seconds })
    })
  })
}

const results: Result[] = []
const waiting = [...checks]

async function worker(): Promise<void> {
  for (let name = waiting.shift(); name !== undefined; name = waiting.shift()) {
    const result = await run(name)
    results.push(result)
    process.stdout.write(`${result.passed ? 'ok    ' : 'FAILED'}  ${name} (${result.seconds} s)\n`)
  }
}

await Promise.all(Array.from({ length: availableParallelism() }, worker))

const failed = results.filter((result) => !result.passed)
for (const { name, output } of failed) process.stdout.write(`\n── npm run ${name}\n${output.trimEnd()}\n`)
process.stdout.write(
  failed.length === 0
    ? `All ${results.length} checks passed.\n`
    : `\n${failed.length} of ${results.length} checks failed: ${failed.map((result) => result.name).join(', ')}.\n`,
)
process.exitCode = failed.length === 0 ? 0 : 1
