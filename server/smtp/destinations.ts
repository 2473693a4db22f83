import { LRUCache } from 'lru-cache'
import type { Clock } from '../lib/clock.ts'
import type { MtaSts } from './mta-sts.ts'
import { allowsHost } from './mta-sts-policy.ts'
import { findMailHosts, type MailHosts, type MailResolver } from './mx.ts'

/** The mail hosts of a domain. `mustVerify`: they may only be used over verified TLS. */
export type Destination = MailHosts & { mustVerify: boolean }

export type Destinations = {
  /** Returns the mail hosts of a domain, from the DNS or the cache. Never rejects. */
  of(domain: string): Promise<Destination>
  /** Returns the cached mail hosts; null: there are none. */
  known(domain: string): Destination | null
}

/** Cache time of DNS answers: the TTL of many records, and short enough to see changes. Milliseconds. */
const rememberedMs = 300_000
const maxRemembered = 10_000

type Entry = { at: number; asked: Promise<Destination>; destination: Destination | null }

export function createDestinations(resolver: MailResolver, mtaSts: MtaSts, clock: Clock): Destinations {
  const entries = new LRUCache<string, Entry>({ max: maxRemembered })

  function fresh(domain: string): Entry | null {
    const entry = entries.get(domain)
    return entry !== undefined && clock.now().getTime() - entry.at < rememberedMs ? entry : null
  }

  async function ask(domain: string): Promise<Destination> {
    const [found, policy] = await Promise.all([findMailHosts(resolver, domain), mtaSts.policyOf(domain)])
    if (found.kind !== 'hosts' || policy?.mode !== 'enforce') return { ...found, mustVerify: false }
    const hosts = found.hosts.filter(({ name }) => allowsHost(policy, name))
    if (hosts.length > 0) return { kind: 'hosts', hosts, mustVerify: true }
    const reason = 'The MTA-STS policy of the domain allows none of its mail servers.'
    return { kind: 'unknown', reason, unusable: false, mustVerify: true }
  }

  return {
    of(domain) {
      const old = fresh(domain)
      if (old !== null) return old.asked
      const entry: Entry = { at: clock.now().getTime(), asked: ask(domain), destination: null }
      entries.set(domain, entry)
      void entry.asked.then((destination) => {
        entry.destination = destination
        // Failed lookups are not cached.
        if (destination.kind === 'unknown' && entries.get(domain) === entry) entries.delete(domain)
      })
      return entry.asked
    },
    known: (domain) => fresh(domain)?.destination ?? null,
  }
}
