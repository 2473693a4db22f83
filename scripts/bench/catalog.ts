import type { Benchmark } from './benchmark.ts'
import { api } from './benchmarks/api.ts'
import { drain } from './benchmarks/drain.ts'
import { fanOut } from './benchmarks/fan-out.ts'
import { flow } from './benchmarks/flow.ts'

/** All benchmarks, in the order in which they are run and told. */
export const benchmarks: readonly Benchmark[] = [drain, flow, fanOut, api]
