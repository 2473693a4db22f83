import { once } from 'node:events'
import type { Logger } from 'pino'
import type { Db } from '../database/connection.ts'
import type { Resolve } from '../network/name-resolution.ts'
import { type AddressPolicy, isRefused } from './attempt/address-guard.ts'
import { enabledWebhooks } from './webhook-targets.ts'

/** Webhooks read at a time. */
const pageSize = 500
/** Names resolved at a time. */
const maxAtOnce = 8
/** Hosts looked at; webhooks of further ones are passed over. */
const maxHosts = 1_000
/** Webhooks named. */
const maxNamed = 20

export type RefusedWebhooks = {
  count: number
  /** The first 20, by age. */
  ids: string[]
}

export type RefusedWebhooksMeans = { db: Db; policy: AddressPolicy; resolve: Resolve; signal: AbortSignal }

/**
 * Finds the enabled webhooks to which `policy` lets nothing be delivered, their hosts resolved as for a
 * delivery. Reads all webhooks, 500 at a time, and judges the first 1,000 hosts. Ends early with `signal`.
 */
export async function findRefusedWebhooks({
  db,
  policy,
  resolve,
  signal,
}: RefusedWebhooksMeans): Promise<RefusedWebhooks> {
  const refusals = new Map<string, boolean>()
  const refused: RefusedWebhooks = { count: 0, ids: [] }
  // A name server that does not answer must not hold the end up.
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

/** `reportRefusedWebhooks` in the background, since names may take long to resolve. Returns what ends it. */
export function startReportingRefused({
  logger,
  onError,
  ...means
}: Omit<RefusedWebhooksMeans, 'signal'> & { logger: Logger; onError: (error: unknown) => void }): () => Promise<void> {
  const stopping = new AbortController()
  const reported = reportRefusedWebhooks({ ...means, signal: stopping.signal }, logger).catch(onError)
  return async () => {
    stopping.abort()
    await reported
  }
}

/** Tells the operator of those, who may have had them allowed until this start. */
export async function reportRefusedWebhooks(means: RefusedWebhooksMeans, logger: Logger): Promise<void> {
  const { count, ids } = await findRefusedWebhooks(means)
  if (count === 0) return
  logger.warn(
    { count, webhookIds: ids },
    'deliveries to these webhooks are refused, because of where their URLs lead, and after five days of failures the webhooks are disabled; to allow them, set WEBHOOK_ALLOW_PRIVATE_NETWORKS=true or WEBHOOK_ALLOW_HTTP=true, or else change the URLs',
  )
}

/** What the judgement of a URL depends on, so that many webhooks of one host are judged once. */
function originOf(url: string): string {
  return URL.parse(url)?.origin ?? url
}
