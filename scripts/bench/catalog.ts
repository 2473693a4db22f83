import type { Benchmark } from './benchmark.ts'
import { api } from './benchmarks/api.ts'
import { backlog } from './benchmarks/backlog.ts'
import { campaign } from './benchmarks/campaign.ts'
import { drain } from './benchmarks/drain.ts'
import { email } from './benchmarks/email.ts'
import { emailCopies } from './benchmarks/email-copies.ts'
import { event } from './benchmarks/event.ts'
import { fairness } from './benchmarks/fairness.ts'
import { fanOut } from './benchmarks/fan-out.ts'
import { flow } from './benchmarks/flow.ts'
import { hostileBodies } from './benchmarks/hostile-bodies.ts'
import { imports } from './benchmarks/imports.ts'
import { latency } from './benchmarks/latency.ts'
import { lists } from './benchmarks/lists.ts'
import { neighbour } from './benchmarks/neighbour.ts'
import { rateLimit } from './benchmarks/rate-limit.ts'
import { requestLogs } from './benchmarks/request-logs.ts'
import { scale } from './benchmarks/scale.ts'
import { segments } from './benchmarks/segments.ts'
import { soak } from './benchmarks/soak.ts'
import { start } from './benchmarks/start.ts'

/** All benchmarks, in the order of running and reporting. */
export const benchmarks: readonly Benchmark[] = [
  start,
  drain,
  flow,
  latency,
  event,
  neighbour,
  fairness,
  backlog,
  fanOut,
  api,
  lists,
  email,
  emailCopies,
  imports,
  segments,
  campaign,
  rateLimit,
  requestLogs,
  hostileBodies,
  scale,
  soak,
]
