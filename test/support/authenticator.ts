import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'
import type { AddPasskey, NewPasskeyOptions, PasskeyChallenge, SignInWithPasskey } from '../../contract/passkeys.ts'

/** The deviations of an authenticator or its browser from correct behaviour. */
export type Deviation = {
  /** The origin of the page. */
  origin?: string
  /** The host name that it signs for. */
  rpId?: string
  /** The type in the client data. */
  type?: string
  challenge?: string
  /** Whether it has verified its user. */
  isVerified?: boolean
  counter?: number
  /** The user that it says the credential is of. */
  userHandle?: string
  /** The attestation statement and its format. */
  attestation?: { fmt: string; attStmt: Map<string, Cbor> }
  /** Whether a page inside of a frame of this origin asked. */
  topOrigin?: string
}

/** An authenticator in software with one discoverable credential at most: ES256, as Web Authentication Level 3 has it. */
export type Authenticator = {
  /** Makes the credential. */
  create(options: NewPasskeyOptions, deviation?: Deviation): Omit<AddPasskey, 'name'>
  /** Signs a challenge. The counter grows by one. */
  get(challenge: PasskeyChallenge, deviation?: Deviation): SignInWithPasskey
}

const flag = { present: 0x01, verified: 0x04, backupEligible: 0x08, backedUp: 0x10, attested: 0x40 } as const

/** @param options.isSynced Whether its provider keeps a copy. @param options.counts False: its counter stays at 0. @param options.idBytes Length of the id of its credential. */
export function createAuthenticator({
  origin,
  isSynced = false,
  counts = true,
  idBytes = 32,
}: {
  origin: string
  isSynced?: boolean
  counts?: boolean
  idBytes?: number
}): Authenticator {
  const credentialId = randomBytes(idBytes)
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  let userHandle = ''
  let counter = 0

  const clientDataOf = (type: string, challenge: string, deviation: Deviation) =>
    Buffer.from(
      JSON.stringify({
        type: deviation.type ?? type,
        challenge: deviation.challenge ?? challenge,
        origin: deviation.origin ?? origin,
        crossOrigin: deviation.topOrigin !== undefined,
        ...(deviation.topOrigin !== undefined && { topOrigin: deviation.topOrigin }),
      }),
    )

  function dataOf(rpId: string, { isVerified = true, ...deviation }: Deviation, credential = Buffer.alloc(0)): Buffer {
    const head = Buffer.alloc(37)
    sha256(deviation.rpId ?? rpId).copy(head)
    head[32] =
      flag.present |
      (isVerified ? flag.verified : 0) |
      (isSynced ? flag.backupEligible | flag.backedUp : 0) |
      (credential.length > 0 ? flag.attested : 0)
    head.writeUInt32BE(deviation.counter ?? counter, 33)
    return Buffer.concat([head, credential])
  }

  return {
    create({ rp, user, challenge }, deviation = {}) {
      userHandle = user.id
      const length = Buffer.alloc(2)
      length.writeUInt16BE(credentialId.length)
      const credential = Buffer.concat([Buffer.alloc(16), length, credentialId, coseOf(publicKey)])
      const { fmt, attStmt } = deviation.attestation ?? { fmt: 'none', attStmt: new Map() }
      const attestationObject = cbor(
        new Map<string, Cbor>([
          ['fmt', fmt],
          ['attStmt', attStmt],
          ['authData', dataOf(rp.id, deviation, credential)],
        ]),
      )
      return {
        clientDataJSON: clientDataOf('webauthn.create', challenge, deviation).toString('base64url'),
        attestationObject: attestationObject.toString('base64url'),
        transports: ['internal'],
      }
    },
    get({ rpId, challenge }, deviation = {}) {
      if (counts) counter += 1
      const clientData = clientDataOf('webauthn.get', challenge, deviation)
      const authenticatorData = dataOf(rpId, deviation)
      const signature = sign('sha256', Buffer.concat([authenticatorData, sha256(clientData)]), privateKey)
      return {
        credentialId: credentialId.toString('base64url'),
        clientDataJSON: clientData.toString('base64url'),
        authenticatorData: authenticatorData.toString('base64url'),
        signature: signature.toString('base64url'),
        userHandle: deviation.userHandle ?? userHandle,
      }
    },
  }
}

function sha256(data: string | Buffer): Buffer {
  return createHash('sha256').update(data).digest()
}

/** An EC2 key for ES256. Source: RFC 9053 §7.1.1. */
function coseOf(key: KeyObject): Buffer {
  const { x = '', y = '' } = key.export({ format: 'jwk' })
  return cbor(
    new Map<number, Cbor>([
      [1, 2],
      [3, -7],
      [-1, 1],
      [-2, Buffer.from(x, 'base64url')],
      [-3, Buffer.from(y, 'base64url')],
    ]),
  )
}

export type Cbor = number | string | Buffer | Cbor[] | Map<string, Cbor> | Map<number, Cbor>

/** Encodes a value. Source: RFC 8949 §3. */
function cbor(value: Cbor): Buffer {
  if (typeof value === 'number') return value < 0 ? headOf(1, -1 - value) : headOf(0, value)
  if (typeof value === 'string') return Buffer.concat([headOf(3, Buffer.byteLength(value)), Buffer.from(value)])
  if (Buffer.isBuffer(value)) return Buffer.concat([headOf(2, value.length), value])
  if (Array.isArray(value)) return Buffer.concat([headOf(4, value.length), ...value.map(cbor)])
  return Buffer.concat([headOf(5, value.size), ...[...value].flatMap(([key, item]) => [cbor(key), cbor(item)])])
}

function headOf(major: number, argument: number): Buffer {
  if (argument < 24) return Buffer.from([(major << 5) | argument])
  if (argument < 256) return Buffer.from([(major << 5) | 24, argument])
  return Buffer.from([(major << 5) | 25, argument >> 8, argument & 0xff])
}
