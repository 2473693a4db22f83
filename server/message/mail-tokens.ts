import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  createSecretKey,
  type KeyObject,
  timingSafeEqual,
} from 'node:crypto'
import { type IdKind, idPattern, idPrefixes } from '../../contract/ids.ts'
import { deriveKey } from '../secrets/secret-box.ts'
import { idOfUuid, uuidOf } from '../shared/ids.ts'

/** A reference to one recipient of an email. */
export type RecipientRef = {
  emailId: string
  /** The index of the recipient, from 0 to 65,535. */
  position: number
}

/** A reference to a copy of an email. */
export type CopyRef = {
  emailId: string
  /** The recipient of a personal copy; null: several recipients may share the copy. */
  position: number | null
}

/** An original link of an email, and the recipient of the copy with it. */
export type LinkRef = RecipientRef & { link: string }

/** The recipient, email and account of an unsubscribe link: all that is needed, even after the email was deleted. */
export type UnsubscribeRef = RecipientRef & {
  accountId: string
  address: string
  /** The topic that the link leaves. Absent: it leaves everything. */
  topicId?: string | undefined
}

/** The message that a recipient may read in a browser. */
export type MessagePageRef = { accountId: string; emailId: string }

/** The page of a campaign for everybody. */
export type CampaignPageRef = { accountId: string; campaignId: string }

/**
 * Makes and reads the tokens in return paths and links. The `read` functions return null for a token that was not made
 * with the same key and for the same purpose. Tokens do not expire. Tokens in links are encrypted, so that neither
 * addresses nor links can be read from them.
 */
export type MailTokens = {
  /**
   * Returns the return path of a copy, the address for its notifications.
   *
   * @param host The host of the return path.
   */
  returnPath(copy: CopyRef, host: string): string
  /** Reads the copy from a return path. Ignores its host and letter case. */
  readReturnPath(address: string): CopyRef | null
  /** Returns only the token of a return path: 42 letters and digits, or 46 with a position. */
  copy(copy: CopyRef): string
  /** Reads the token of a return path. Case-insensitive. */
  readCopy(token: string): CopyRef | null
  pixel(recipient: RecipientRef): string
  readPixel(token: string): RecipientRef | null
  click(link: LinkRef): string
  readClick(token: string): LinkRef | null
  unsubscribe(from: UnsubscribeRef): string
  readUnsubscribe(token: string): UnsubscribeRef | null
  messagePage(of: MessagePageRef): string
  readMessagePage(token: string): MessagePageRef | null
  campaignPage(of: CampaignPageRef): string
  readCampaignPage(token: string): CampaignPageRef | null
}

/** The prefix of the token in a return path. */
const returnPathPrefix = 'b.'
/** Base32 characters: ten bytes. */
const shortMacLength = 16
/** Bytes: one AES block. */
const tagLength = 16
/** Bytes of a packed identifier. */
export const idLength = 16
const positionLength = 2
const recipientLength = idLength + positionLength

/** @param key The encryption key. Each purpose has its own key, derived from it. */
export function createMailTokens(key: Buffer): MailTokens {
  const returnPathKey = purposeKey(key, 'return path 1')
  const pixels = createSealer(key, 'pixel')
  const clicks = createSealer(key, 'click')
  const unsubscribes = createSealer(key, 'unsubscribe')
  const leavings = createSealer(key, 'leave topic')
  const messagePages = createSealer(key, 'message page')
  const campaignPages = createSealer(key, 'campaign page')

  function copy({ emailId, position }: CopyRef): string {
    const text = emailId.slice(idPrefixes.email.length + 1) + (position === null ? '' : digitsOf(position))
    return text + shortMac(returnPathKey, text)
  }

  function readCopy(token: string): CopyRef | null {
    const whole = token.toLowerCase()
    const text = whole.slice(0, -shortMacLength)
    const { emailId, digits } = copyForm.exec(text)?.groups ?? {}
    if (emailId === undefined || !emailIdPattern.test(`${idPrefixes.email}_${emailId}`)) return null
    const mac = Buffer.from(whole.slice(-shortMacLength))
    const expected = Buffer.from(shortMac(returnPathKey, text))
    if (mac.length !== expected.length || !timingSafeEqual(mac, expected)) return null
    return {
      emailId: `${idPrefixes.email}_${emailId}`,
      position: digits === undefined ? null : Number.parseInt(digits, positionRadix),
    }
  }

  return {
    returnPath: (ref, host) => `${returnPathPrefix}${copy(ref)}@${host}`,
    readReturnPath(address) {
      const local = address.slice(0, address.lastIndexOf('@')).toLowerCase()
      return local.startsWith(returnPathPrefix) ? readCopy(local.slice(returnPathPrefix.length)) : null
    },
    copy,
    readCopy,
    pixel: (recipient) => pixels.seal(packRecipient(recipient)),
    readPixel(token) {
      const payload = pixels.open(token)
      return payload === null ? null : unpackRecipient(payload)
    },
    click: (link) => clicks.seal(Buffer.concat([packRecipient(link), Buffer.from(link.link)])),
    readClick(token) {
      const payload = clicks.open(token)
      if (payload === null) return null
      return { ...unpackRecipient(payload), link: payload.toString('utf8', recipientLength) }
    },
    unsubscribe(from) {
      const { accountId, address, topicId } = from
      const ids = [packRecipient(from), packId(accountId), ...(topicId === undefined ? [] : [packId(topicId)])]
      const sealer = topicId === undefined ? unsubscribes : leavings
      return sealer.seal(Buffer.concat([...ids, Buffer.from(address)]))
    },
    readUnsubscribe(token) {
      // Links of before topics leave everything.
      const payload = unsubscribes.open(token)
      if (payload !== null) return unpackUnsubscribe(payload)
      const leaving = leavings.open(token)
      if (leaving === null) return null
      const topicId = unpackId('topic', leaving.subarray(topicAt))
      const rest = Buffer.concat([leaving.subarray(0, topicAt), leaving.subarray(topicAt + idLength)])
      return { ...unpackUnsubscribe(rest), topicId }
    },
    messagePage: ({ accountId, emailId }) => messagePages.seal(Buffer.concat([packId(accountId), packId(emailId)])),
    readMessagePage(token) {
      const payload = messagePages.open(token)
      if (payload === null) return null
      return { accountId: unpackId('account', payload), emailId: unpackId('email', payload.subarray(idLength)) }
    },
    campaignPage: ({ accountId, campaignId }) =>
      campaignPages.seal(Buffer.concat([packId(accountId), packId(campaignId)])),
    readCampaignPage(token) {
      const payload = campaignPages.open(token)
      if (payload === null) return null
      return { accountId: unpackId('account', payload), campaignId: unpackId('campaign', payload.subarray(idLength)) }
    },
  }
}

const emailIdPattern = idPattern('email')

/** The identifier without its prefix, and an optional position. */
const copyForm = /^(?<emailId>.{26})(?<digits>[0-9a-v]{4})?$/
/** The radix of a position in a return path, which must be case-insensitive. */
const positionRadix = 32

function digitsOf(position: number): string {
  return position.toString(positionRadix).padStart(4, '0')
}

/** The lower-case alphabet of the identifiers. It is case-insensitive. */
const alphabet = '0123456789abcdefghjkmnpqrstvwxyz'

function shortMac(key: KeyObject, text: string): string {
  const digest = createHmac('sha256', key).update(text).digest()
  // Five bits per character. The low five bits of a byte are uniform, because 32 divides 256.
  return Array.from(digest.subarray(0, shortMacLength), (byte) => alphabet[byte & 0x1f]).join('')
}

export type Sealer = {
  seal(payload: Buffer): string
  /** Returns the payload, which is at least `recipientLength` bytes; null: the token is not valid. */
  open(token: string): Buffer | null
}

function purposeKey(key: Buffer, purpose: string): KeyObject {
  return createSecretKey(deriveKey(key, `mail ${purpose}`))
}

/**
 * Creates a sealer. It encrypts and authenticates payloads as base64url: AES-256-CTR with the HMAC-SHA-256 of the
 * payload, cut to 128 bits, as the initial counter. The counter is also the tag, so a token is 16 bytes longer than
 * its payload, and the same payload always gives the same token.
 *
 * Tokens of earlier versions have an HMAC before an unencrypted payload. They can still be read.
 *
 * Source: Rogaway and Shrimpton, "Deterministic Authenticated-Encryption" (2006) §4, as in RFC 5297.
 */
export function createSealer(key: Buffer, purpose: string): Sealer {
  const encryptionKey = purposeKey(key, `${purpose} encryption 2`)
  const tagKey = purposeKey(key, `${purpose} 2`)
  const clearKey = purposeKey(key, `${purpose} 1`)
  const isTag = (tag: Buffer, payload: Buffer, by: KeyObject) => timingSafeEqual(tag, tagOf(payload, by))
  return {
    seal(payload) {
      const tag = tagOf(payload, tagKey)
      const cipher = createCipheriv(cipherName, encryptionKey, tag)
      return Buffer.concat([tag, cipher.update(payload), cipher.final()]).toString('base64url')
    },
    open(token) {
      const bytes = Buffer.from(token, 'base64url')
      // The decoder ignores invalid characters. Comparing with the input ensures that a token has one form only.
      if (bytes.length < tagLength + recipientLength || bytes.toString('base64url') !== token) return null
      const tag = bytes.subarray(0, tagLength)
      const rest = bytes.subarray(tagLength)
      const decipher = createDecipheriv(cipherName, encryptionKey, tag)
      const payload = Buffer.concat([decipher.update(rest), decipher.final()])
      if (isTag(tag, payload, tagKey)) return payload
      return isTag(tag, rest, clearKey) ? rest : null
    },
  }
}

const cipherName = 'aes-256-ctr'

function tagOf(payload: Buffer, key: KeyObject): Buffer {
  return createHmac('sha256', key).update(payload).digest().subarray(0, tagLength)
}

function packRecipient({ emailId, position }: RecipientRef): Buffer {
  const bytes = Buffer.alloc(positionLength)
  bytes.writeUInt16BE(position)
  return Buffer.concat([packId(emailId), bytes])
}

function unpackRecipient(bytes: Buffer): RecipientRef {
  return { emailId: unpackId('email', bytes), position: bytes.readUInt16BE(idLength) }
}

/** Where the address of an unsubscribe link begins, or the topic before it. */
const topicAt = recipientLength + idLength

function unpackUnsubscribe(payload: Buffer): UnsubscribeRef {
  const accountId = unpackId('account', payload.subarray(recipientLength))
  return { ...unpackRecipient(payload), accountId, address: payload.toString('utf8', topicAt) }
}

export function packId(id: string): Buffer {
  return Buffer.from(uuidOf(id).replaceAll('-', ''), 'hex')
}

/** Reads an identifier from the beginning of bytes. */
export function unpackId(kind: IdKind, bytes: Buffer): string {
  const hex = bytes.toString('hex', 0, idLength)
  return idOfUuid(kind, hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5'))
}
