import { request } from 'node:https'
import { isIP, type TcpSocketConnectOpts } from 'node:net'
import { LRUCache } from 'lru-cache'
import type { Clock } from '../lib/clock.ts'
import { parsePolicy, policyIdOf, type StsPolicy } from './mta-sts-policy.ts'
import { addressesOfHost, type MailResolver } from './mx.ts'

export type MtaStsOptions = {
  resolver: MailResolver
  clock: Clock
  /** True: policies may be fetched from addresses that are not public. */
  allowPrivate: boolean
  /** Additional trusted certificate authorities, PEM. */
  ca: string | undefined
  /** The port of policy servers. Default: 443. */
  port?: number
}

export type MtaSts = {
  /** Returns the current policy of a domain; null: none. Never rejects. */
  policyOf(domain: string): Promise<StsPolicy | null>
}

/** Maximum bytes of a policy. Source: RFC 8461 §3.3. */
const maxPolicyBytes = 65_536
/** Timeout of a fetch. Shorter than the RFC's minute, because the message waits for it. Milliseconds. */
const fetchTimeoutMs = 20_000
/** Timeout for connecting to one of several addresses, so that there is time for the next. Milliseconds. */
const addressAttemptMs = 4_000
/** A policy is fetched again after this, or sooner when half of its lifetime has passed (§10.2). Milliseconds. */
const refreshAfterMs = 86_400_000
/** Maximum cached policies. */
const maxPolicies = 10_000

/** A cached policy. `id`: the last announced one. `refreshAt`: when it is fetched again even with the same id. */
type Known = { id: string; policy: StsPolicy; until: number; refreshAt: number }

/**
 * Creates an MTA-STS client (RFC 8461). It fetches the policy of a domain when the announced id changes and once a
 * day, and caches it for the lifetime that it states, also while the policy server cannot be reached.
 */
export function createMtaSts(options: MtaStsOptions): MtaSts {
  const { resolver, clock } = options
  const known = new LRUCache<string, Known>({ max: maxPolicies })

  function remember(domain: string, found: Omit<Known, 'refreshAt'>, now: number): void {
    known.set(domain, { ...found, refreshAt: now + Math.min(refreshAfterMs, (found.until - now) / 2) })
  }

  return {
    async policyOf(domain) {
      const now = clock.now().getTime()
      const old = known.get(domain)
      const current = old !== undefined && old.until > now ? old : undefined
      const id = policyIdOf(await resolver.resolveTxt(`_mta-sts.${domain}`).catch(() => [])) ?? current?.id
      if (id === undefined) return null
      if (id === current?.id && current.refreshAt > now) return current.policy
      const policy = await fetchPolicy(domain, options).catch(() => null)
      if (policy !== null) remember(domain, { id, policy, until: now + policy.maxAgeSeconds * 1000 }, now)
      else if (current !== undefined) remember(domain, current, now)
      return policy ?? current?.policy ?? null
    },
  }
}

/**
 * Fetches a policy from the first address that accepts a connection. Follows no redirect and verifies the certificate
 * (§3.3). Null: the response is not a valid policy. Rejects when the fetch fails.
 */
async function fetchPolicy(domain: string, options: MtaStsOptions): Promise<StsPolicy | null> {
  const { resolver, allowPrivate, ca, port = 443 } = options
  const name = `mta-sts.${domain}`
  const addresses = await addressesOfHost(resolver, name, allowPrivate)
  const { promise, resolve, reject } = Promise.withResolvers<StsPolicy | null>()
  const asked = request(
    {
      host: name,
      port,
      ...oneByOne(addresses),
      path: '/.well-known/mta-sts.txt',
      headers: { host: name },
      agent: false,
      signal: AbortSignal.timeout(fetchTimeoutMs),
      ...(ca !== undefined && { ca }),
    },
    (answer) => {
      const chunks: Buffer[] = []
      let length = 0
      answer.on('data', (chunk: Buffer) => {
        chunks.push(chunk)
        length += chunk.length
        if (length > maxPolicyBytes) asked.destroy(new Error('the policy is too large'))
      })
      answer.on('error', reject)
      answer.on('end', () => {
        const isText = /^text\/plain\b/i.test(answer.headers['content-type'] ?? '')
        const isPolicy = answer.statusCode === 200 && isText
        resolve(isPolicy ? parsePolicy(Buffer.concat(chunks).toString('utf8')) : null)
      })
    },
  )
  asked.on('error', reject)
  asked.end()
  return promise
}

/** Returns options to try these addresses one by one. The types of `request` lack these options of the socket. */
function oneByOne(
  addresses: readonly string[],
): Pick<TcpSocketConnectOpts, 'lookup' | 'autoSelectFamily' | 'autoSelectFamilyAttemptTimeout'> {
  const found = addresses.map((address) => ({ address, family: isIP(address) }))
  return {
    lookup: (_name, _options, callback) => callback(null, found),
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: addressAttemptMs,
  }
}
