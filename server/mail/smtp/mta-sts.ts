import { request } from 'node:https'
import type { Clock } from '../../clock.ts'
import { BoundedMap } from './bounded-map.ts'
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
/** Policies that are remembered. */
const maxPolicies = 10_000

type Known = { id: string; policy: StsPolicy; until: number }

/**
 * MTA-STS (RFC 8461): fetches the policies of domains, when they announce another, and remembers them as long as
 * they say, also while they cannot be asked.
 */
export function createMtaSts(options: MtaStsOptions): MtaSts {
  const { resolver, clock } = options
  const known = new BoundedMap<string, Known>(maxPolicies)

  return {
    async policyOf(domain) {
      const now = clock.now().getTime()
      const old = known.get(domain)
      const current = old !== undefined && old.until > now ? old : undefined
      const id = policyIdOf(await resolver.resolveTxt(`_mta-sts.${domain}`).catch(() => []))
      if (id === null || id === current?.id) return current?.policy ?? null
      const policy = await fetchPolicy(domain, options).catch(() => null)
      if (policy === null) return current?.policy ?? null
      known.set(domain, { id, policy, until: now + policy.maxAgeSeconds * 1000 })
      return policy
    },
  }
}

/** Follows no redirect, and looks at the certificate (§3.3). Null: there is no valid policy. Rejects when it cannot be had. */
async function fetchPolicy(domain: string, options: MtaStsOptions): Promise<StsPolicy | null> {
  const { resolver, allowPrivate, ca, port = 443 } = options
  const name = `mta-sts.${domain}`
  const [host] = await addressesOfHost(resolver, name, allowPrivate)
  const { promise, resolve, reject } = Promise.withResolvers<StsPolicy | null>()
  const asked = request(
    {
      host,
      port,
      servername: name,
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
