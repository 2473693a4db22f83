import type { Benchmark } from './benchmark.ts'
import { drain } from './benchmarks/drain.ts'

/** All benchmarks, in the order in which they are run and told. */
export const benchmarks: readonly Benchmark[] = [drain]
