import { setTimeout as delay } from 'node:timers/promises'
import type { RequestHandler } from 'express'
import type { Registry } from 'prom-client'

/** Whether a part of the service can do its work. By the name it is reported under. */
export type Checks = Readonly<Record<string, () => Promise<boolean>>>

/** A check that takes longer counts as failed. Milliseconds. */
const checkTimeoutMs = 2_000

/** The process answers. */
export const answerHealth: RequestHandler = (_req, res) => {
  res.json({ status: 'ok' })
}

/** Whether requests should be sent here: 200, or 503 with the names of the checks that failed. */
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

/** Why a check failed stands in the log of the part that failed, not in an answer anybody may read. */
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

/** The figures of `registry` in the text format of Prometheus. */
export function answerMetrics(registry: Registry): RequestHandler {
  return async (_req, res) => {
    const text = await registry.metrics()
    res.setHeader('Content-Type', registry.contentType)
    res.end(text)
  }
}
