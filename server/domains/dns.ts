import { Resolver } from 'node:dns/promises'
import { hasCode } from '../lib/error-codes.ts'

/** What the DNS says of a name: its records, that it has none, or that it cannot be told now. */
export type DnsResponse<T> =
  | { kind: 'found'; values: readonly T[] }
  | { kind: 'none' }
  | { kind: 'timeout' }
  | { kind: 'failure'; code: string }

export type MxRecord = { exchange: string; priority: number }

/** Questions to the name servers. None throws. */
export type Dns = Disposable & {
  /** Each TXT record in one piece, however it is cut into strings. */
  txt(name: string): Promise<DnsResponse<string>>
  mx(name: string): Promise<DnsResponse<MxRecord>>
  cname(name: string): Promise<DnsResponse<string>>
}

export type DnsOptions = {
  /** Addresses as `node:dns` takes them; null: those of the system. */
  servers: readonly string[] | null
  /** Milliseconds for all questions together. Default `defaultBudgetMs`. */
  budgetMs?: number
  /** Ends them: what is not answered then is a time-out too. */
  signal?: AbortSignal
}

/** Milliseconds. */
export const defaultBudgetMs = 5_000

/**
 * Questions that together take no longer than their budget: what is not answered then is a time-out. They
 * are asked anew each time; only the name servers themselves remember what they said.
 */
export function openDns({ servers, budgetMs = defaultBudgetMs, signal }: DnsOptions): Dns {
  // Asked twice, the second time twice as long: within the budget, unless there are many servers.
  const resolver = new Resolver({ timeout: Math.ceil(budgetMs / 4), tries: 2 })
  if (servers !== null) resolver.setServers(servers)
  let isOver = signal?.aborted ?? false
  const end = () => {
    isOver = true
    resolver.cancel()
  }
  const timer = setTimeout(end, budgetMs)
  signal?.addEventListener('abort', end, { once: true })

  async function ask<T>(question: () => Promise<T[]>): Promise<DnsResponse<T>> {
    if (isOver) return { kind: 'timeout' }
    try {
      return { kind: 'found', values: await question() }
    } catch (error) {
      if (hasCode(error, 'ENOTFOUND', 'ENODATA')) return { kind: 'none' }
      if (hasCode(error, 'ETIMEOUT', 'ECANCELLED')) return { kind: 'timeout' }
      return { kind: 'failure', code: codeOf(error) }
    }
  }

  return {
    txt: (name) => ask(async () => (await resolver.resolveTxt(name)).map((strings) => strings.join(''))),
    mx: (name) => ask(() => resolver.resolveMx(name)),
    cname: (name) => ask(() => resolver.resolveCname(name)),
    [Symbol.dispose]() {
      clearTimeout(timer)
      signal?.removeEventListener('abort', end)
      end()
    },
  }
}

/** As people of the DNS call it: `ESERVFAIL` is `SERVFAIL`. */
function codeOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown'
  return code.replace(/^E(?=SERVFAIL|REFUSED|FORMERR|NOTIMP)/, '')
}
