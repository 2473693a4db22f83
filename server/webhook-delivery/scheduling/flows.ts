import type { TurnAccount } from './deficit-round-robin.ts'
import { type FlowLimit, newFlowLimit } from './flow-limit.ts'
import { type Host, type HostState, newHost } from './host-ceiling.ts'
import { createRing, type Ring } from './round-robin-list.ts'
import type { FlowName } from './scheduler-types.ts'

export type Account = TurnAccount & {
  id: string
  /** Flows that may start, and those of them whose endpoints are known to respond. */
  ready: Ring<Flow>
  readyAnswered: Ring<Flow>
  hosts: Map<string, Host<Flow>>
  flows: number
  /** Deliveries of its flows in memory, and room reserved for more. */
  inHand: number
  /** Requests in flight that have been silent for too long. */
  silent: number
}

export type Flow = {
  name: FlowName
  account: Account
  host: Host<Flow>
  limit: FlowLimit
  waiting: number
  inHand: number
  /** Room reserved in memory. */
  expected: number
  offers: number
  held: number
  /** Held requests that count against the limit: reserved or running, not silent. */
  counted: number
  running: number
  /** A `HostState`: the flow waits for the ceiling of its host, among flows of that state. */
  state: 'no_work' | 'at_limit' | 'ready' | HostState
  usedAt: number
}

/** The flows that a scheduler knows, with their accounts and hosts. */
export type Flows = {
  find(key: string): Flow | undefined
  findAccount(id: string): Account | undefined
  /** Returns a flow, which is made without work where it is not known. */
  of(name: FlowName, now: number): Flow
  all(): Iterable<Flow>
  /** Forgets flows without work that were not used since `before`, and their hosts and accounts with the last of them. */
  forgetIdle(before: number): void
  /** Forgets an account without flows and requests. */
  forgetIfEmpty(account: Account): void
}

/** @param flowMax The most that the limit of a flow may become. */
export function createFlows(flowMax: number): Flows {
  const flows = new Map<string, Flow>()
  const accounts = new Map<string, Account>()

  function accountOf(id: string): Account {
    const known = accounts.get(id)
    if (known !== undefined) return known
    const none = { held: 0, unanswered: 0, deficit: 0, flows: 0, inHand: 0, silent: 0 }
    const rings = { ready: createRing<Flow>(), readyAnswered: createRing<Flow>() }
    const account: Account = { id, ...none, ...rings, hosts: new Map(), state: 'no_work' }
    accounts.set(id, account)
    return account
  }

  function of(name: FlowName, now: number): Flow {
    const known = flows.get(name.flow)
    if (known !== undefined) return known
    const account = accountOf(name.account)
    const host = account.hosts.get(name.host) ?? newHost<Flow>()
    account.hosts.set(name.host, host)
    account.flows += 1
    host.flows += 1
    const limit = newFlowLimit(flowMax)
    const none = { waiting: 0, inHand: 0, expected: 0, offers: 0, held: 0, counted: 0, running: 0 }
    const flow: Flow = { name, account, host, limit, ...none, state: 'no_work', usedAt: now }
    flows.set(name.flow, flow)
    return flow
  }

  function forgetIfEmpty({ id, flows, held }: Account): void {
    if (flows === 0 && held === 0) accounts.delete(id)
  }

  return {
    find: (key) => flows.get(key),
    findAccount: (id) => accounts.get(id),
    of,
    all: () => flows.values(),
    forgetIdle(before) {
      for (const [key, flow] of flows) {
        const { account, host, name } = flow
        const isIdle = flow.held === 0 && flow.waiting <= 0 && flow.inHand + flow.expected === 0
        if (!isIdle || flow.usedAt >= before) continue
        flows.delete(key)
        account.flows -= 1
        host.flows -= 1
        if (host.flows === 0) account.hosts.delete(name.host)
        // It stays while a request of it is still being settled.
        forgetIfEmpty(account)
      }
    },
    forgetIfEmpty,
  }
}
