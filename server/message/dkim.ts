import { createHash, type KeyObject, sign } from 'node:crypto'
import { promisify } from 'node:util'
import { type HeaderField, relaxedBody, relaxedHeader, relaxedName, splitMessage } from './dkim-canonicalization.ts'
import { emailIdHeader } from './headers.ts'

export type DkimKey = {
  /** The public key is published at `<selector>._domainkey.<domain>`. */
  selector: string
  algorithm: 'rsa-sha256' | 'ed25519-sha256'
  privateKey: KeyObject
}

export type DkimSigner = {
  /** Lower case, A-labels. */
  domain: string
  /** The keys, in the order of their signatures. */
  keys: readonly DkimKey[]
}

/**
 * Fields that readers see or follow. They are oversigned: the signature names each once more than it occurs, even if
 * it does not occur, so that a field added on the way breaks the signature. Source: RFC 6376 §5.4.2, §8.15.
 */
const oversignedFields: readonly string[] = [
  'from',
  'sender',
  'reply-to',
  'to',
  'cc',
  'subject',
  'date',
  'list-id',
  'list-help',
  'list-unsubscribe',
  'list-unsubscribe-post',
  'list-subscribe',
  'list-post',
  'list-owner',
  'list-archive',
]

/** Fields that every message has once. They are oversigned if they occur. Source: RFC 6376 §8.15. */
const singleFields: readonly string[] = ['message-id', 'mime-version', 'content-type', 'content-transfer-encoding']

/** All signed fields, in the order of the signature. Source: RFC 6376 §5.4.1, RFC 8058 §4. */
const signedFields: readonly string[] = [
  ...oversignedFields,
  ...singleFields,
  'in-reply-to',
  'references',
  'feedback-id',
  'auto-submitted',
  emailIdHeader.toLowerCase(),
]

const lineLength = 76

/** Signs in the thread pool, because an RSA signature would block the event loop for a millisecond. */
const signInPool = promisify(sign)

/**
 * Returns the message with a DKIM-Signature field for each key in front. Canonicalization is relaxed/relaxed. The
 * signature covers the whole body and every header field that readers and mailbox providers look at.
 *
 * Source: RFC 6376, RFC 8301 (SHA-256 alone), RFC 8463 (Ed25519).
 *
 * @param message With CRLF line ends.
 * @param at The time of the signature, with a resolution of a second.
 */
export async function signMessage(message: Buffer, signer: DkimSigner, at: Date): Promise<Buffer> {
  const { fields, body } = splitMessage(message)
  const names = namesToSign(fields)
  const header = signedHeader(fields, names)
  const bodyHash = createHash('sha256').update(relaxedBody(body)).digest('base64')
  const signatures = await Promise.all(
    signer.keys.map(async (key) => {
      const unsigned = signatureTags({ key, domain: signer.domain, names, bodyHash, at })
      const value = await signatureOf(key, dataToSign(header, unsigned))
      return `DKIM-Signature:${unsigned}${inLines(value)}\r\n`
    }),
  )
  return Buffer.concat([Buffer.from(signatures.join(''), 'latin1'), message])
}

/** Returns the names of the fields to sign, in order. Repeated and oversigned fields occur several times. */
export function namesToSign(fields: readonly HeaderField[]): string[] {
  const counts = new Map<string, number>()
  for (const { name } of fields) {
    const key = relaxedName(name)
    counts.set(key, (counts.get(key) ?? 0) + 1)
  }
  return signedFields.flatMap((name) => {
    const count = counts.get(name) ?? 0
    const more = oversignedFields.includes(name) || (count > 0 && singleFields.includes(name)) ? 1 : 0
    return Array.from({ length: count + more }, () => name)
  })
}

/**
 * Returns the fields in `names` in relaxed form, each with its line end. A repeated name selects the next field of
 * that name, from the bottom up; nothing if none is left.
 *
 * Source: RFC 6376 §3.7, §5.4.2.
 */
export function signedHeader(fields: readonly HeaderField[], names: readonly string[]): string {
  const byName = Map.groupBy(fields, ({ name }) => relaxedName(name))
  const taken = new Map<string, number>()
  let header = ''
  for (const name of names) {
    const key = relaxedName(name)
    const count = (taken.get(key) ?? 0) + 1
    taken.set(key, count)
    const field = byName.get(key)?.at(-count)
    if (field !== undefined) header += `${relaxedHeader(field)}\r\n`
  }
  return header
}

/**
 * Returns the data to sign: the signed header, then the DKIM-Signature field itself with an empty `b=`.
 *
 * Source: RFC 6376 §3.7.
 *
 * @param tags The value of the field.
 */
export function dataToSign(header: string, tags: string): Buffer {
  return Buffer.from(header + relaxedHeader({ name: 'DKIM-Signature', value: tags }), 'latin1')
}

/** Returns the signature in base64. */
async function signatureOf({ algorithm, privateKey }: DkimKey, data: Buffer): Promise<string> {
  const signature =
    algorithm === 'rsa-sha256'
      ? await signInPool('sha256', data, privateKey)
      : // The message for Ed25519 is the SHA-256 hash. Source: RFC 8463 §3.
        await signInPool(null, createHash('sha256').update(data).digest(), privateKey)
  return signature.toString('base64')
}

type Tags = { key: DkimKey; domain: string; names: readonly string[]; bodyHash: string; at: Date }

/** Returns the folded value of the field up to `b=`. */
function signatureTags({ key, domain, names, bodyHash, at }: Tags): string {
  const seconds = Math.floor(at.getTime() / 1000)
  return [
    ` v=1; a=${key.algorithm}; c=relaxed/relaxed;`,
    ` d=${domain};`,
    ` s=${key.selector}; t=${seconds};`,
    ...namesInLines(names),
    ` bh=${bodyHash};`,
    ' b=',
  ].join('\r\n')
}

/** Returns the lines of the `h=` tag, folded after colons. */
function namesInLines(names: readonly string[]): string[] {
  const lines: string[] = []
  let line = ' h='
  names.forEach((name, index) => {
    const item = name + (index === names.length - 1 ? ';' : ':')
    if (line.length + item.length > lineLength) {
      lines.push(line)
      line = '  '
    }
    line += item
  })
  return [...lines, line]
}

/** Folds base64 text that continues an existing line. */
function inLines(base64: string): string {
  return base64.match(/.{1,70}/g)?.join('\r\n  ') ?? ''
}
