import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Benchmark, Result } from './bench/benchmark.ts'
import { benchmarks } from './bench/catalog.ts'
import { describeMachine } from './bench/machine.ts'
import { type Options, readOptions, UsageError } from './bench/options.ts'
import { createProcesses, type Processes } from './bench/processes.ts'
import { machineLine, toMarkdown, toText, withSections } from './bench/report.ts'

/*
 * Runs the benchmarks. Stops all programs that a benchmark has started when it ends, also after an error or a signal.
 */

const names = benchmarks.map(({ name }) => name)
const resultsFile = join(import.meta.dirname, 'bench', 'RESULTS.md')

/** Most unexpected lines of the programs that are shown. */
const shownComplaints = 10

const help = `Usage: npm run bench -- [NAME …] [options]

Measures the service and a baseline alternately in the same run. Without a name, all of:

${benchmarks.map(({ name, measures }) => `  ${name.padEnd(11)} ${measures}`).join('\n')}

Options:
  --rounds N      measurements of each side (default: as each benchmark has it)
  --seconds S     length of a measurement, about (default: as each benchmark has it)
  --size PART     share of the prepared data, 1 for all; less is for a quick look (default 1)
  --profile DIR   writes CPU profiles of the service to DIR and lists functions and statements by cost
  --json          prints the results as JSON; progress goes to stderr
  --write         puts the results into scripts/bench/RESULTS.md
  --help          shows this
`

async function runOne(benchmark: Benchmark, options: Options, processes: Processes): Promise<Result> {
  const { name } = benchmark
  // A benchmark with one long round always has one.
  const rounds = benchmark.rounds === 1 ? 1 : (options.rounds ?? benchmark.rounds)
  const seconds = options.seconds ?? benchmark.seconds
  const { size, profileDir } = options
  const progress = (text: string) => process.stderr.write(`${name}: ${text}\n`)
  progress('starting')
  const outcome = await benchmark.run({ processes, rounds, seconds, size, progress, profileDir }).catch((error) => {
    for (const line of complaintsOf(processes)) progress(line)
    throw error
  })
  const usage = await processes.usage()
  const peakBytes = Object.fromEntries([...usage].map(([process, { peakBytes }]) => [process, peakBytes]))
  const notes = [...outcome.notes, ...complaintsOf(processes)]
  return { name, rounds, seconds, size, ...outcome, notes, peakBytes }
}

/** Returns what the processes have written that they usually do not. */
function complaintsOf(processes: Processes): string[] {
  return processes
    .complaints()
    .slice(0, shownComplaints)
    .map((line) => `It was written by ${line}`)
}

async function main(options: Options): Promise<void> {
  const { profileDir } = options
  if (profileDir !== null) await mkdir(profileDir, { recursive: true })
  const machine = await describeMachine()
  const chosen = options.names.length === 0 ? benchmarks : benchmarks.filter(({ name }) => options.names.includes(name))
  const results: Result[] = []
  for (const benchmark of chosen) {
    const processes = createProcesses()
    current = processes
    try {
      results.push(await runOne(benchmark, options, processes))
    } finally {
      await processes[Symbol.asyncDispose]()
    }
    const result = results.at(-1)
    if (result === undefined) continue
    if (!options.json) process.stdout.write(`\n${toText(result, benchmark)}\n\n`)
    if (options.write) {
      const text = await readFile(resultsFile, 'utf8').catch(() => '')
      await writeFile(
        resultsFile,
        withSections(text, { [benchmark.name]: toMarkdown(result, benchmark, machine) }, names),
      )
    }
  }
  if (options.json) process.stdout.write(`${JSON.stringify({ machine, results }, null, 2)}\n`)
  else process.stdout.write(`${machineLine(machine)}\n`)
}

/** The programs of the running benchmark. */
let current: Processes | undefined
/** The shutdown that a signal has started. */
let ending: Promise<never> | undefined

function interrupt(): void {
  ending ??= end()
}

/** Stops the programs, then this process. */
async function end(): Promise<never> {
  process.stderr.write('\nStopping the programs …\n')
  await current?.[Symbol.asyncDispose]()
  process.exit(130)
}

process.on('SIGINT', interrupt)
process.on('SIGTERM', interrupt)

try {
  const options = readOptions(process.argv.slice(2), names)
  if (options.help) process.stdout.write(help)
  else await main(options)
} catch (error) {
  // After a signal, errors are expected: the stopped programs reject pending calls.
  await ending
  if (!(error instanceof UsageError)) throw error
  process.stderr.write(`bench: ${error.message}; try --help\n`)
  process.exitCode = 2
}
