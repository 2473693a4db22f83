import { Resolver } from 'node:dns/promises'
import { codeOf, hasCode } from '../lib/error-codes.ts'
import { type IpAddress, reverseNameOf } from '../lib/ip-address.ts'

/** The result of a DNS query: the records, none, a time-out, or an error of the name servers. */
export type DnsResponse<T> =
  | { kind: 'found'; values: readonly T[] }
  | { kind: 'none' }
  | { kind: 'timeout' }
  | { kind: 'failure'; code: string }

export type MxRecord = { exchange: string; priority: number }

/** DNS queries. They do not throw. */
export type Dns = Disposable & {
  /** Returns the TXT records, each with its strings joined. */
  txt(name: string): Promise<DnsResponse<string>>
  mx(name: string): Promise<DnsResponse<MxRecord>>
  cname(name: string): Promise<DnsResponse<string>>
  /** Returns the addresses of a name, of one version of IP. */
  addresses(name: string, version: 4 | 6): Promise<DnsResponse<string>>
  /** Returns the names of an address, from its PTR records. `Resolver.reverse` would read the file of hosts too. */
  names(address: IpAddress): Promise<DnsResponse<string>>
}

export type DnsOptions = {
  /** Name servers in the format of `node:dns`. Null: those of the system. */
  servers: readonly string[] | null
  /** Milliseconds for all queries together. Default `defaultBudgetMs`. */
  budgetMs?: number
  /** Ends all queries; those under way become time-outs. */
  signal?: AbortSignal
}

/** Milliseconds. */
export const defaultBudgetMs = 5_000

/**
 * Returns DNS queries with a common time budget. Queries without a response at its end become time-outs. Nothing is
 * cached here, only by the name servers.
 */
export function openDns({ servers, budgetMs = defaultBudgetMs, signal }: DnsOptions): Dns {
  // Two tries, the second with twice the time-out: within the budget unless there are many servers.
  const resolver = new Resolver({ timeout: Math.ceil(budgetMs / 4), tries: 2 })
  if (servers !== null) resolver.setServers(servers)
  let isOver = signal?.aborted ?? false
  const end = () => {
    isOver = true
    resolver.cancel()
  }
  const timer = setTimeout(end, budgetMs)
  signal?.addEventListener('abort', end, { once: true })

  async function ask<T>(query: () => Promise<T[]>): Promise<DnsResponse<T>> {
    if (isOver) return { kind: 'timeout' }
    try {
      return { kind: 'found', values: await query() }
    } catch (error) {
      if (hasCode(error, 'ENOTFOUND', 'ENODATA')) return { kind: 'none' }
      if (hasCode(error, 'ETIMEOUT', 'ECANCELLED')) return { kind: 'timeout' }
      return { kind: 'failure', code: dnsErrorOf(error) }
    }
  }

  return {
    txt: (name) => ask(async () => (await resolver.resolveTxt(name)).map((strings) => strings.join(''))),
    mx: (name) => ask(() => resolver.resolveMx(name)),
    cname: (name) => ask(() => resolver.resolveCname(name)),
    addresses: (name, version) => ask(() => (version === 4 ? resolver.resolve4(name) : resolver.resolve6(name))),
    names: (address) => ask(() => resolver.resolvePtr(reverseNameOf(address))),
    [Symbol.dispose]() {
      clearTimeout(timer)
      signal?.removeEventListener('abort', end)
      end()
    },
  }
}

/** Returns the usual name of a DNS error: `SERVFAIL` for `ESERVFAIL`. */
function dnsErrorOf(error: unknown): string {
  return (codeOf(error) || 'unknown').replace(/^E(?=SERVFAIL|REFUSED|FORMERR|NOTIMP)/, '')
}
