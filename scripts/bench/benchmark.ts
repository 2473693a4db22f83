import type { Processes } from './processes.ts'
import type { Goal } from './statistics.ts'

/** The context of a run of a benchmark. */
export type BenchmarkContext = {
  processes: Processes
  /** Measurements of each side. */
  rounds: number
  /** Approximate length of a measurement. */
  seconds: number
  /** Share of the data to prepare: 1 for all of it. */
  size: number
  /** Prints progress for people. */
  progress: (text: string) => void
  /** Directory for profiles of the service. Null: no profiles. */
  profileDir: string | null
}

/** The values of a figure, one for each round. */
export type Measurement = {
  /** The measured side: the service, the baseline, or one of several configurations. */
  side: string
  figure: string
  unit: string
  values: readonly number[]
}

/** A figure with a goal. */
export type Target = { figure: string; unit?: string; value: number; goal: Goal }

/** CPU time of a process in a round of a side: the median of all rounds. */
export type Cost = { side: string; process: string; cpuSeconds: number }

export type Outcome = {
  measurements: readonly Measurement[]
  targets: readonly Target[]
  costs: readonly Cost[]
  /** Sentences that explain the figures. */
  notes: readonly string[]
}

/** The result of a benchmark. */
export type Result = Outcome & {
  name: string
  rounds: number
  seconds: number
  size: number
  /** Peak memory in bytes of each process, by name. */
  peakBytes: Record<string, number>
}

export type Benchmark = {
  name: string
  /** A line that says what it measures. */
  measures: string
  /** A line about the baseline. Null: none. */
  baseline: string | null
  /** Default rounds of each side, and seconds of a round. */
  rounds: number
  seconds: number
  run(context: BenchmarkContext): Promise<Outcome>
}
