import { once } from 'node:events'
import type { Logger } from 'pino'
import type { Db } from '../database/connection.ts'
import type { Resolve } from '../network/name-resolution.ts'
import { type AddressPolicy, isRefused } from './attempt/address-guard.ts'
import { resolverOf } from './attempt/exchange.ts'
import { enabledWebhooks } from './webhook-targets.ts'

/** Webhooks read by one statement. */
const pageSize = 500
/** Names resolved at the same time. */
const maxAtOnce = 8
/** Maximum number of origins checked. Webhooks of further origins are skipped. */
const maxHosts = 1_000
/** Maximum number of webhooks listed by id. */
const maxNamed = 20

export type RefusedWebhooks = {
  count: number
  /** The first 20, the oldest first. */
  ids: string[]
}

export type RefusedWebhooksMeans = { db: Db; policy: AddressPolicy; resolve: Resolve; signal: AbortSignal }

/**
 * Finds the enabled webhooks that `policy` allows no deliveries to; their hosts are resolved as for a delivery. Reads
 * all webhooks, 500 at a time, and checks the first 1,000 origins. Ends early when `signal` aborts.
 */
export async function findRefusedWebhooks({
  db,
  policy,
  resolve,
  signal,
}: RefusedWebhooksMeans): Promise<RefusedWebhooks> {
  const refusals = new Map<string, boolean>()
  const refused: RefusedWebhooks = { count: 0, ids: [] }
  // A name server that does not respond must not delay the shutdown.
  const aborted = once(signal, 'abort').then(() => false)

  async function judge(url: string): Promise<void> {
    const key = originOf(url)
    if (refusals.has(key) || refusals.size >= maxHosts) return
    refusals.set(key, false)
    refusals.set(key, await Promise.race([isRefused(url, policy, resolve), aborted]))
  }

  for (let after = ''; !signal.aborted; ) {
    const page = await enabledWebhooks(db, { after, limit: pageSize })
    for (let start = 0; start < page.length && !signal.aborted; start += maxAtOnce) {
      await Promise.all(page.slice(start, start + maxAtOnce).map(({ url }) => judge(url)))
    }
    for (const { id, url } of page) {
      if (refusals.get(originOf(url)) !== true) continue
      refused.count += 1
      if (refused.ids.length < maxNamed) refused.ids.push(id)
    }
    if (page.length < pageSize) break
    after = page.at(-1)?.id ?? after
  }
  return refused
}

/**
 * Runs `reportRefusedWebhooks` in the background, since names may take long to resolve. Returns a function that ends
 * it.
 */
export function startReportingRefused({
  db,
  policy,
  logger,
}: Pick<RefusedWebhooksMeans, 'db' | 'policy'> & { logger: Logger }): () => Promise<void> {
  const stopping = new AbortController()
  const means = { db, policy, resolve: resolverOf(policy), signal: stopping.signal }
  const reported = reportRefusedWebhooks(means, logger).catch((error: unknown) =>
    logger.error({ err: error }, 'the check for refused webhooks failed'),
  )
  return async () => {
    stopping.abort()
    await reported
  }
}

/** Warns the operator about refused webhooks. They may have been allowed before this start. */
export async function reportRefusedWebhooks(means: RefusedWebhooksMeans, logger: Logger): Promise<void> {
  const { count, ids } = await findRefusedWebhooks(means)
  if (count === 0) return
  logger.warn(
    { count, webhookIds: ids },
    'the settings forbid deliveries to the URLs of these webhooks; after five days of failures webhooks are disabled; set WEBHOOK_ALLOW_PRIVATE_NETWORKS=true or WEBHOOK_ALLOW_HTTP=true to allow them, or change the URLs',
  )
}

/** Returns the part of a URL that the check depends on, so that webhooks with the same origin are checked once. */
function originOf(url: string): string {
  return URL.parse(url)?.origin ?? url
}
