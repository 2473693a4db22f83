import { createSocket, type Socket } from 'node:dgram'
import { Resolver } from 'node:dns/promises'
import { type Resolve, resolveWith } from '../../server/network/name-resolution.ts'
import { type DnsQuery, type DnsRecords, type DnsType, parseQuery, rcode, recordsOf, response } from './dns-packets.ts'
import { patienceMs } from './patience.ts'

/** A name server that fails or says nothing. */
export type DnsFailure = 'failure' | 'silence'

/** The addresses or the records of a name, with the types that cannot be had; or a failure whatever is asked. */
export type DnsAnswer =
  | readonly string[]
  | (DnsRecords & { failing?: Partial<Record<DnsType, DnsFailure>> })
  | DnsFailure

export type DnsServer = AsyncDisposable & {
  /** Where it is asked: what a setting or a `Resolver` takes. */
  address: string
  /** Resolves names as the service does, but here. */
  resolve: Resolve
  /** The queries so far. */
  queries: readonly DnsQuery[]
  /**
   * Sets the answers for a name: the first answer is for the first query of each type, and so on; the last
   * one stays. A name that was never set does not exist. A CNAME is followed.
   */
  set(name: string, ...answers: DnsAnswer[]): void
  /** Has a name not exist again. */
  unset(name: string): void
  stop(): Promise<void>
}

/** A real name server on loopback, over UDP. `port`: default any that is free. */
export async function startDnsServer({ port = 0 }: { port?: number } = {}): Promise<DnsServer> {
  const zone = new Map<string, DnsAnswer[]>()
  const queries: DnsQuery[] = []
  const socket = createSocket('udp4')

  /** Returns the answer for a name after `asked` queries. */
  function answerTo(name: string, asked: number): DnsAnswer | undefined {
    const answers = zone.get(name)
    return answers?.[Math.min(asked, answers.length - 1)]
  }

  /** The records of a name, behind those of the CNAMEs that lead to them; and the code of the answer. */
  function look(name: string, type: DnsType, answer: DnsAnswer | undefined): { code: number; records: Buffer[] } {
    if (answer === undefined) return { code: rcode.noSuchName, records: [] }
    if (answer === 'failure' || answer === 'silence') return { code: rcode.serverFailure, records: [] }
    const records = isAddresses(answer) ? byFamily(answer) : answer
    if (records.CNAME === undefined || type === 'CNAME')
      return { code: rcode.ok, records: recordsOf(name, type, records) }
    const target = look(records.CNAME, type, answerTo(records.CNAME, 0))
    return { code: target.code, records: [...recordsOf(name, 'CNAME', records), ...target.records] }
  }

  socket.on('message', (message, peer) => {
    const { name, type, question } = parseQuery(message)
    const asked = queries.filter((query) => query.name === name && query.type === type).length
    queries.push({ name, type })
    const given = answerTo(name, asked)
    const answer = failureOf(given, type) ?? given
    if (answer === 'silence') return
    socket.send(response(message, { question, ...look(name, type, answer) }), peer.port)
  })
  await new Promise<void>((resolve) => socket.bind(port, '127.0.0.1', resolve))

  const address = `127.0.0.1:${socket.address().port}`
  const resolver = new Resolver({ timeout: patienceMs, tries: 1 })
  resolver.setServers([address])
  const stop = () => close(socket)

  return {
    address,
    resolve: resolveWith(resolver),
    queries,
    set: (name, ...answers) => zone.set(name, answers),
    unset: (name) => zone.delete(name),
    stop,
    [Symbol.asyncDispose]: stop,
  }
}

function close(socket: Socket): Promise<void> {
  return new Promise((resolve) => socket.close(resolve))
}

function failureOf(answer: DnsAnswer | undefined, type: DnsType): DnsFailure | undefined {
  return typeof answer === 'object' && !isAddresses(answer) ? answer.failing?.[type] : undefined
}

function isAddresses(answer: readonly string[] | DnsRecords): answer is readonly string[] {
  return Array.isArray(answer)
}

function byFamily(addresses: readonly string[]): DnsRecords {
  const isV6 = (address: string) => address.includes(':')
  return { A: addresses.filter((address) => !isV6(address)), AAAA: addresses.filter(isV6) }
}
