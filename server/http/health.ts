import { setTimeout as delay } from 'node:timers/promises'
import type { RequestHandler } from 'express'
import type { Registry } from 'prom-client'

/** Checks by the name they are reported under. Each returns true when a part of the service can do its work. */
export type Checks = Readonly<Record<string, () => Promise<boolean>>>

/** Milliseconds after which a check counts as failed. */
const checkTimeoutMs = 2_000

/** Answers 200 while the process can answer at all. */
export const answerHealth: RequestHandler = (_req, res) => {
  res.json({ status: 'ok' })
}

/** Answers 200 when requests should be sent here, otherwise 503. The body has the result of each check. */
export function answerReadiness(checks: Checks, timeoutMs: number = checkTimeoutMs): RequestHandler {
  return async (_req, res) => {
    const results = await Promise.all(
      Object.entries(checks).map(async ([name, check]) => [name, await passes(check, timeoutMs)] as const),
    )
    const isReady = results.every(([, passed]) => passed)
    res.status(isReady ? 200 : 503).json({
      status: isReady ? 'ready' : 'unavailable',
      checks: Object.fromEntries(results.map(([name, passed]) => [name, passed ? 'ok' : 'failed'])),
    })
  }
}

/** Returns true when the check passes in time. The reason for a failure is in the logs, not in a public response. */
async function passes(check: () => Promise<boolean>, timeoutMs: number): Promise<boolean> {
  const giveUp = new AbortController()
  try {
    return await Promise.race([check(), delay(timeoutMs, false, { signal: giveUp.signal })])
  } catch {
    return false
  } finally {
    giveUp.abort()
  }
}

/** Answers the metrics of `registry` in the text format of Prometheus. */
export function answerMetrics(registry: Registry): RequestHandler {
  return async (_req, res) => {
    const text = await registry.metrics()
    res.setHeader('Content-Type', registry.contentType)
    res.end(text)
  }
}
