import type { Clock } from '../lib/clock.ts'
import { addToCount } from '../lib/count-map.ts'
import { type StartTimer, startSystemTimer } from '../lib/timer.ts'
import { resolveWithSystem } from '../network/name-resolution.ts'
import { type Lane, lanes } from '../shared/lanes.ts'
import { createBackoffs, hostPauses, relayPauses } from './backoffs.ts'
import { createDestinations } from './destinations.ts'
import { createDirect } from './direct.ts'
import { createMtaSts } from './mta-sts.ts'
import type { MailResolver } from './mx.ts'
import { Pool } from './pool.ts'
import { createRelay, type RelayOptions } from './relay.ts'
import type { RelayConfig } from './relay-url.ts'
import type { Route } from './route.ts'
import type { DeliverMeans } from './send-to-host.ts'
import type { Outcome, Transport } from './transport.ts'

/** The settings of a transport. */
export type TransportConfig = {
  /** The name of this service in EHLO. */
  hostname: string
  /** Maximum connections in total. */
  concurrency: number
  connectionsPerHost: number
  messagesPerConnection: number
}

/** The kind of a transport with its parameters. */
export type TransportKind =
  | { kind: 'relay'; relay: RelayConfig; onUse?: RelayOptions['onUse'] }
  /** To the capture server in this process, which listens on this port of 127.0.0.1. */
  | { kind: 'capture'; port: () => number }
  | { kind: 'direct'; direct: DirectMeans }

export type DirectMeans = {
  resolver: MailResolver
  /** True: mail servers may have addresses that are not public. */
  allowPrivateNetworks: boolean
  /** The ports of mail servers and of MTA-STS policy servers. Default: 25 and 443. */
  ports?: { smtp: number; https: number }
}

export type TransportOptions = {
  config: TransportConfig
  to: TransportKind
  clock: Clock
  /** True: relays are asked for success notifications. Only useful if this service can receive them. Default: false. */
  successNotifications?: boolean
  /** Called with the number of destinations that cannot be used, after each conversation. */
  onUnusable?: (count: number) => void
  /** Additional trusted certificate authorities, PEM. Default: none. */
  ca?: string
  /** A parameter so that tests can control time. Default: system timers. */
  startTimer?: StartTimer
}

/**
 * Conversations of a lane that are begun per allowed connection. Further emails wait in the queue, where they take no
 * memory.
 */
const begunPerConnection = 4

/** Creates a transport. It opens no connection before the first message. */
export function createTransport(options: TransportOptions): Transport {
  const { config, clock, startTimer = startSystemTimer } = options
  const limits = {
    connections: config.concurrency,
    connectionsPerHost: config.connectionsPerHost,
    messagesPerConnection: config.messagesPerConnection,
  }
  const session = { hostname: config.hostname, startTimer, ca: options.ca }
  const pool = new Pool({ limits, means: session, clock, startTimer })
  const route = routeOf(options, pool, startTimer)
  const maxBegun = config.concurrency * begunPerConnection
  /** Conversations in progress of each lane, by destination; `begun` is their total. */
  const inProgress = {
    single: { under: new Map<string, number>(), begun: 0 },
    bulk: { under: new Map<string, number>(), begun: 0 },
  }
  const rests = createBackoffs(route.only === null ? hostPauses : relayPauses, clock, options.onUnusable)

  function roomFor(destination: string, lane: Lane): number {
    const { under, begun } = inProgress[lane]
    const rest = rests.of(destination)
    // After the back-off, one conversation (or one of each lane, when both come at once) probes whether the destination can be used again.
    if (rest !== null) return clock.now() < rest.until || isUnderWay(destination) || begun >= maxBegun ? 0 : 1
    const hosts = route.hostsOf(destination)
    // Until the hosts of a destination are known, it gets as many conversations as one host has connections.
    const room =
      hosts.length === 0
        ? config.connectionsPerHost - (under.get(destination) ?? 0)
        : hosts.reduce((sum, host) => sum + pool.roomFor(host, lane), 0)
    return Math.max(0, Math.min(room, maxBegun - begun))
  }

  function isUnderWay(destination: string): boolean {
    return lanes.some((lane) => inProgress[lane].under.has(destination))
  }

  function count(destination: string, lane: Lane, change: 1 | -1): void {
    inProgress[lane].begun += change
    addToCount(inProgress[lane].under, destination, change)
  }

  return {
    destinationOf: (domain) => route.destinationOf(domain),
    only: route.only,
    unusable(destination) {
      const rest = rests.of(destination)
      if (rest === null) return null
      const soon = new Date(clock.now().getTime() + hostPauses.firstMs)
      // The back-off is over or nearly so: a probe runs, or is about to.
      return rest.until < soon ? { ...rest, until: soon } : rest
    },
    room: (lane) => (route.only === null ? Math.max(0, maxBegun - inProgress[lane].begun) : roomFor(route.only, lane)),
    roomFor,
    async send({ destination, ...conversation }, signal) {
      const letter = { ...conversation, waiting: conversation.waiting ?? signal }
      count(destination, letter.lane, 1)
      const before = rests.of(destination)
      try {
        const outcomes = await route.send(destination, letter, signal)
        // An abort by this service says nothing about the destination, but what a server said before does.
        if (!letter.waiting.aborted || outcomes.some(isOfConversation)) rests.note(destination, before, outcomes)
        return outcomes
      } finally {
        count(destination, letter.lane, -1)
      }
    },
    close: () => pool.close(),
  }
}

function routeOf(options: TransportOptions, pool: Pool, startTimer: StartTimer): Route {
  const { to } = options
  const successNotifications = to.kind === 'relay' && (options.successNotifications ?? false)
  const means = { pool, options: { startTimer, successNotifications } }
  const resolve = resolveWithSystem
  switch (to.kind) {
    case 'relay':
      return createRelay({ relay: () => to.relay, isFinal: false, onUse: to.onUse, resolve, means })
    case 'direct':
      return directTo(to.direct, options, means)
    case 'capture':
      return createRelay({ relay: () => sink(to.port()), isFinal: true, resolve, means })
  }
}

function directTo(direct: DirectMeans, { clock, ca }: TransportOptions, means: DeliverMeans): Route {
  const { resolver, allowPrivateNetworks: allowPrivate, ports = { smtp: 25, https: 443 } } = direct
  const mtaSts = createMtaSts({ resolver, clock, allowPrivate, ca, port: ports.https })
  const destinations = createDestinations(resolver, mtaSts, clock)
  return createDirect({ destinations, resolver, allowPrivate, port: ports.smtp, means })
}

function sink(port: number): RelayConfig {
  return { host: '127.0.0.1', port, tls: 'opportunistic', credentials: null }
}

/** Returns true for an outcome of a conversation, so that the destination can be used. */
function isOfConversation(outcome: Outcome): boolean {
  return outcome.kind !== 'deferred' || (outcome.reply !== null && !outcome.unusable)
}
