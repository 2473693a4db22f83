import type { Processes } from './processes.ts'
import type { Goal } from './statistics.ts'

/** What a benchmark is run with. */
export type BenchmarkContext = {
  processes: Processes
  /** How often each side is measured. */
  rounds: number
  /** How long one measurement takes, about. */
  seconds: number
  /** The part of the prepared data that is prepared: 1 for all of it. */
  size: number
  /** Tells people what is going on. */
  progress: (text: string) => void
  /** Where profiles of the service go; null when none are wanted. */
  profileDir: string | null
}

/** One figure, once for each round. */
export type Measurement = {
  /** What was measured: the subject, the baseline, or one of several set-ups. */
  side: string
  figure: string
  unit: string
  values: readonly number[]
}

/** A figure that shall reach something. */
export type Target = { figure: string; unit?: string; value: number; goal: Goal }

/** What one process used in a round of a side: the median of the rounds. */
export type Cost = { side: string; process: string; cpuSeconds: number }

export type Outcome = {
  measurements: readonly Measurement[]
  targets: readonly Target[]
  costs: readonly Cost[]
  /** Sentences on what the figures do not say. */
  notes: readonly string[]
}

/** What the whole of a benchmark came to. */
export type Result = Outcome & {
  name: string
  rounds: number
  seconds: number
  size: number
  /** Greatest memory of each process, by name. Bytes. */
  peakBytes: Record<string, number>
}

export type Benchmark = {
  name: string
  /** What it measures, in a line. */
  measures: string
  /** What it is compared with; null when with nothing. */
  baseline: string | null
  /** How often, and how long, each side is measured when nothing else is asked for. */
  rounds: number
  seconds: number
  run(context: BenchmarkContext): Promise<Outcome>
}
