import { createSocket, type Socket } from 'node:dgram'
import { Resolver } from 'node:dns/promises'
import ipaddr from 'ipaddr.js'
import { type Resolve, resolveWith } from '../../server/delivery/name-resolution.ts'

/** The addresses of a name, or a name server that fails. */
export type DnsAnswer = string[] | 'failure'

export type DnsQuery = { name: string; type: 'A' | 'AAAA' }

export type DnsServer = AsyncDisposable & {
  /** Resolves names as the service does, but here. */
  resolve: Resolve
  /** What was asked so far. */
  queries: readonly DnsQuery[]
  /**
   * What is answered for a name: the first answer to the first query of each type, and so on; the last
   * one stays. A name that was never set does not exist.
   */
  set(name: string, ...answers: DnsAnswer[]): void
  stop(): Promise<void>
}

const typeOf = new Map<number, DnsQuery['type']>([
  [1, 'A'],
  [28, 'AAAA'],
])
const rcode = { ok: 0, serverFailure: 2, noSuchName: 3 }

/** A real name server on loopback, for A and AAAA records. */
export async function startDnsServer(): Promise<DnsServer> {
  const zone = new Map<string, DnsAnswer[]>()
  const queries: DnsQuery[] = []
  const socket = createSocket('udp4')

  socket.on('message', (message, peer) => {
    const { name, type, question } = parseQuery(message)
    const asked = queries.filter((query) => query.name === name && query.type === type).length
    queries.push({ name, type })
    const answers = zone.get(name)
    socket.send(
      response(message, question, { type, answer: answers?.[Math.min(asked, answers.length - 1)] }),
      peer.port,
    )
  })
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve))

  const resolver = new Resolver({ timeout: 2_000, tries: 1 })
  resolver.setServers([`127.0.0.1:${socket.address().port}`])
  const stop = () => close(socket)

  return {
    resolve: resolveWith(resolver),
    queries,
    set: (name, ...answers) => zone.set(name, answers),
    stop,
    [Symbol.asyncDispose]: stop,
  }
}

function close(socket: Socket): Promise<void> {
  return new Promise((resolve) => socket.close(resolve))
}

/** RFC 1035 §4.1: a header of twelve bytes, then the question: labels, type, class. */
function parseQuery(message: Buffer): DnsQuery & { question: Buffer } {
  const labels: string[] = []
  let at = 12
  for (let length = message.readUInt8(at); length > 0; length = message.readUInt8(at)) {
    labels.push(message.toString('latin1', at + 1, at + 1 + length))
    at += 1 + length
  }
  const type = typeOf.get(message.readUInt16BE(at + 1))
  if (type === undefined) throw new Error('the name server of the tests knows A and AAAA alone')
  return { name: labels.join('.').toLowerCase(), type, question: message.subarray(12, at + 5) }
}

type Answered = { type: DnsQuery['type']; answer: DnsAnswer | undefined }

function response(query: Buffer, question: Buffer, { type, answer }: Answered): Buffer {
  const addresses = answer === undefined || answer === 'failure' ? [] : answer.map((text) => ipaddr.parse(text))
  const records = addresses
    .filter((address) => (address.kind() === 'ipv4') === (type === 'A'))
    .map((address) => record(type, address.toByteArray()))
  const header = Buffer.alloc(12)
  query.copy(header, 0, 0, 2)
  header.writeUInt16BE(0x8180 | codeOf(answer), 2)
  header.writeUInt16BE(1, 4)
  header.writeUInt16BE(records.length, 6)
  return Buffer.concat([header, question, ...records])
}

function codeOf(answer: DnsAnswer | undefined): number {
  if (answer === undefined) return rcode.noSuchName
  return answer === 'failure' ? rcode.serverFailure : rcode.ok
}

/** A record of the name in the question, of class IN, not to be cached. */
function record(type: DnsQuery['type'], address: number[]): Buffer {
  const fixed = Buffer.alloc(12)
  fixed.writeUInt16BE(0xc00c, 0)
  fixed.writeUInt16BE(type === 'A' ? 1 : 28, 2)
  fixed.writeUInt16BE(1, 4)
  fixed.writeUInt16BE(address.length, 10)
  return Buffer.concat([fixed, Buffer.from(address)])
}
