import ipaddr from 'ipaddr.js'

/** The types of records that the name server of the tests knows, with their numbers: RFC 1035 §3.2.2, RFC 3596. */
const typeCodes = { A: 1, CNAME: 5, PTR: 12, MX: 15, TXT: 16, AAAA: 28 } as const

export type DnsType = keyof typeof typeCodes

export type DnsQuery = { name: string; type: DnsType }

/** The records of one name. */
export type DnsRecords = {
  A?: readonly string[]
  AAAA?: readonly string[]
  /** A text is cut into strings of 255 octets; a list is its strings as they are. */
  TXT?: readonly (string | readonly string[])[]
  MX?: readonly { exchange: string; priority: number }[]
  CNAME?: string
  PTR?: readonly string[]
}

export const rcode = { ok: 0, serverFailure: 2, noSuchName: 3 }

/** RFC 1035 §4.1: a header of twelve bytes, then the question: labels, type, class. */
export function parseQuery(message: Buffer): DnsQuery & { question: Buffer } {
  const labels: string[] = []
  let at = 12
  for (let length = message.readUInt8(at); length > 0; length = message.readUInt8(at)) {
    labels.push(message.toString('latin1', at + 1, at + 1 + length))
    at += 1 + length
  }
  const code = message.readUInt16BE(at + 1)
  const type = (Object.keys(typeCodes) as DnsType[]).find((name) => typeCodes[name] === code)
  if (type === undefined) throw new Error(`the name server of the tests knows no records of type ${code}`)
  return { name: labels.join('.').toLowerCase(), type, question: message.subarray(12, at + 5) }
}

/** The answer to a query: its question again, and the records, each written by `record`. */
export function response(query: Buffer, { question, code, records }: Answer): Buffer {
  const header = Buffer.alloc(12)
  query.copy(header, 0, 0, 2)
  header.writeUInt16BE(0x8180 | code, 2)
  header.writeUInt16BE(1, 4)
  header.writeUInt16BE(records.length, 6)
  return Buffer.concat([header, question, ...records])
}

type Answer = { question: Buffer; code: number; records: readonly Buffer[] }

/** The records of one type that `name` has, of class IN, not to be cached. */
export function recordsOf(name: string, type: DnsType, records: DnsRecords): Buffer[] {
  return dataOf(type, records).map((data) => {
    const fixed = Buffer.alloc(10)
    fixed.writeUInt16BE(typeCodes[type], 0)
    fixed.writeUInt16BE(1, 2)
    fixed.writeUInt16BE(data.length, 8)
    return Buffer.concat([nameOf(name), fixed, data])
  })
}

function dataOf(type: DnsType, records: DnsRecords): Buffer[] {
  switch (type) {
    case 'A':
    case 'AAAA':
      return (records[type] ?? []).map((address) => Buffer.from(ipaddr.parse(address).toByteArray()))
    case 'CNAME':
      return records.CNAME === undefined ? [] : [nameOf(records.CNAME)]
    case 'PTR':
      return (records.PTR ?? []).map(nameOf)
    case 'MX':
      return (records.MX ?? []).map(({ exchange, priority }) => {
        return Buffer.concat([Buffer.from([priority >> 8, priority & 0xff]), nameOf(exchange)])
      })
    case 'TXT':
      return (records.TXT ?? []).map((text) => Buffer.concat(stringsOf(text).map(characterString)))
  }
}

function stringsOf(text: string | readonly string[]): readonly string[] {
  return typeof text === 'string' ? (text.match(/.{1,255}/gs) ?? ['']) : text
}

function characterString(text: string): Buffer {
  const bytes = Buffer.from(text)
  return Buffer.concat([Buffer.from([bytes.length]), bytes])
}

/** Labels, each behind its length; the root, which is the empty name, is one of none. */
function nameOf(name: string): Buffer {
  const labels = name === '' ? [] : name.split('.')
  return Buffer.concat([...labels.map(characterString), Buffer.from([0])])
}
