import { createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { dkimVerify } from 'mailauth/lib/dkim/verify.js'
import { type ParsedMail, simpleParser } from 'mailparser'
import type { Clock } from '../../../server/lib/clock.ts'
import { createComposer, type MessageParts } from '../../../server/message/compose.ts'
import { createMailComposer } from '../../../server/message/compose-in-thread.ts'
import type { DkimSigner } from '../../../server/message/dkim.ts'
import { createMailTokens } from '../../../server/message/mail-tokens.ts'
import { newId } from '../../../server/shared/ids.ts'

export const publicUrl = 'https://post.example.com'
const key = Buffer.alloc(32, 7)
export const tokens = createMailTokens(key)
export const signedAt = new Date('2026-03-01T12:00:00.900Z')
const clock: Clock = { now: () => signedAt }
export const composer = createComposer({ tokens, publicUrl: () => publicUrl, clock })
export const mailComposer = createMailComposer({ key, publicUrl: () => publicUrl, clock })

const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
const ed25519 = generateKeyPairSync('ed25519').privateKey

export const signer: DkimSigner = {
  domain: 'example.com',
  keys: [
    { selector: 'r1', algorithm: 'rsa-sha256', privateKey: rsa },
    { selector: 'e1', algorithm: 'ed25519-sha256', privateKey: ed25519 },
  ],
}

/** The DNS records of the DKIM keys, by name. Source: RFC 6376 §3.6.1, RFC 8463 §4. */
const records: Record<string, string> = {
  'r1._domainkey.example.com': `v=DKIM1; k=rsa; p=${spki(rsa).toString('base64')}`,
  // The last 32 bytes are the key itself.
  'e1._domainkey.example.com': `v=DKIM1; k=ed25519; p=${spki(ed25519).subarray(-32).toString('base64')}`,
}

function spki(key: KeyObject): Buffer {
  return createPublicKey(key).export({ type: 'spki', format: 'der' })
}

/** Returns the result of an independent verifier for each signature of a message. */
export async function verified(message: Buffer): Promise<{ selector: string; result: string }[]> {
  const { results } = await dkimVerify(message, {
    strict: true,
    resolver: async (name) => {
      const record = records[name]
      if (record === undefined) throw Object.assign(new Error(`${name} is not there`), { code: 'ENOTFOUND' })
      return [[record]]
    },
  })
  return results.map(({ selector, status }) => ({ selector: selector ?? '', result: status.result }))
}

export const bothPass = [
  { selector: 'r1', result: 'pass' },
  { selector: 'e1', result: 'pass' },
]

/** A message as an independent parser reads it. */
export function parsed(message: Buffer): Promise<ParsedMail> {
  return simpleParser(message, { skipTextToHtml: true, skipHtmlToText: true, skipImageLinks: true })
}

type Changes = {
  email?: Partial<MessageParts['email']>
  content?: Partial<MessageParts['content']>
  recipients?: MessageParts['recipients']
  signer?: DkimSigner | null
}

/** A message to Ann, with these changes. */
export function partsOf({ email, content, ...others }: Changes = {}): MessageParts {
  const createdAt = new Date('2026-03-01T09:30:00.000Z')
  return {
    email: {
      id: newId('email', createdAt),
      accountId: newId('account', createdAt),
      messageId: '<one@example.com>',
      sender: 'Postern <hello@example.com>',
      subject: 'Hello',
      createdAt,
      scheduledAt: null,
      audienceId: null,
      topicId: null,
      trackOpens: false,
      trackClicks: false,
      ...email,
    },
    content: { replyTo: [], headers: {}, html: null, text: 'Hello Ann', attachments: [], ...content },
    recipients: [{ position: 0, kind: 'to', name: 'Ann', address: 'ann@example.org' }],
    signer,
    ...others,
  }
}

/** The header of a message, unfolded, by lower-case name; each with all its values. */
export function headersOf(message: Buffer): Map<string, string[]> {
  const [head = ''] = message.toString('utf8').split('\r\n\r\n', 1)
  const headers = new Map<string, string[]>()
  for (const line of head.replace(/\r\n(?=[ \t])/g, '').split('\r\n')) {
    const name = line.slice(0, line.indexOf(':')).toLowerCase()
    headers.set(name, [...(headers.get(name) ?? []), line.slice(line.indexOf(':') + 1).trim()])
  }
  return headers
}
