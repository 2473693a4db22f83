import { request } from 'node:https'
import { isIP, type TcpSocketConnectOpts } from 'node:net'
import { LRUCache } from 'lru-cache'
import type { Clock } from '../lib/clock.ts'
import { parsePolicy, policyIdOf, type StsPolicy } from './mta-sts-policy.ts'
import { addressesOfHost, type MailResolver } from './mx.ts'

export type MtaStsOptions = {
  resolver: MailResolver
  clock: Clock
  /** Whether policies are fetched from addresses that are not public too. */
  allowPrivate: boolean
  /** Authorities trusted beside the usual ones, PEM. */
  ca: string | undefined
  /** Of the servers of policies. Default: 443. */
  port?: number
}

export type MtaSts = {
  /** The policy of a domain that counts now; null: none. Never rejects. */
  policyOf(domain: string): Promise<StsPolicy | null>
}

/** Bytes. As the RFC suggests, §3.3. */
const maxPolicyBytes = 65_536
/** Milliseconds. Less than the RFC's minute: the message waits for it. */
const fetchTimeoutMs = 20_000
/** Milliseconds for one address of several to be connected to, so that there is time for the next. */
const addressAttemptMs = 4_000
/** Milliseconds after which a policy is fetched again, or sooner when half of its time has passed (§10.2). */
const refreshAfterMs = 86_400_000
/** Policies that are remembered. */
const maxPolicies = 10_000

/** `id`: as it was announced last. `refreshAt`: when it is fetched again, whatever is announced. */
type Known = { id: string; policy: StsPolicy; until: number; refreshAt: number }

/**
 * MTA-STS (RFC 8461): fetches the policies of domains, when they announce another and once a day, and remembers
 * them as long as they say, also while they cannot be had.
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
 * From the first of the addresses that can be connected to. Follows no redirect, and looks at the certificate
 * (§3.3). Null: there is no valid policy. Rejects when it cannot be had.
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

/** To connect to these addresses in turn. The types of `request` leave out what it hands on to the socket. */
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
