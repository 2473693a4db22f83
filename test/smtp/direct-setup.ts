import { Resolver } from 'node:dns/promises'
import { createTransport, type TransportOptions } from '../../server/smtp/create-transport.ts'
import type { Transport } from '../../server/smtp/transport.ts'
import { testAuthority } from '../support/certificates.ts'
import { createTestTime } from '../support/clock.ts'
import type { DnsServer } from '../support/dns-server.ts'
import { config } from './smtp-setup.ts'

export type DirectSetup = {
  /** Where the records are. */
  dns: Pick<DnsServer, 'address'>
  /** Of the mail servers; all listen on this one. */
  port: number
  /** Of the servers of policies. Default: one that nobody listens on. */
  https?: number
  /** Default: true, since all of them are on loopback. */
  allowPrivateNetworks?: boolean
  /** Until a name server that says nothing counts as failing. Default: 5,000, so that all others have answered. */
  dnsTimeoutMs?: number
  clock?: TransportOptions['clock']
  startTimer?: TransportOptions['startTimer']
}

/** A transport that finds the servers of recipients in the name server of a test. */
export function directTo({
  dns,
  port,
  https = 1,
  allowPrivateNetworks = true,
  dnsTimeoutMs = 5_000,
  clock,
  startTimer,
}: DirectSetup): Transport {
  const resolver = new Resolver({ timeout: dnsTimeoutMs, tries: 1 })
  resolver.setServers([dns.address])
  return createTransport({
    config,
    to: { kind: 'direct', direct: { resolver, allowPrivateNetworks, ports: { smtp: port, https } } },
    clock: clock ?? createTestTime().clock,
    ...(startTimer && { startTimer }),
    ca: testAuthority(),
  })
}
