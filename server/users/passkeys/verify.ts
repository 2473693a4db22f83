import type { AddPasskey, SignInWithPasskey } from '../../../contract/passkeys.ts'
import type { RelyingParty } from './relying-party.ts'

/** COSE algorithms that passkeys may sign with: ES256, EdDSA, RS256. Source: IANA COSE Algorithms. */
export const algorithms = [-7, -8, -257] as const

/** Source: Web Authentication Level 3 §7.1. */
const maxCredentialIdBytes = 1_023
/** Several times what a key of these algorithms has. The table takes no more. */
const maxPublicKeyBytes = 4_096

/** How a challenge is checked. */
type Expected = {
  relyingParty: RelyingParty
  /** Returns true for a challenge that counts. */
  isChallenge: (challenge: string) => boolean
}

/** The data of a verified new credential. */
export type NewCredential = { credentialId: Buffer; publicKey: Buffer; counter: number; isSynced: boolean }

/**
 * Loaded with the first passkey of a process: with what it needs for attestations it takes 0.4 s and 26 MB,
 * which most processes never need.
 */
const load = () => import('@simplewebauthn/server')

/**
 * Verifies what a browser made with `navigator.credentials.create()`. Returns null when it is not for this service, not
 * for the challenge, without user verification, or with an id or key that is too long.
 *
 * Source: Web Authentication Level 3 §7.1.
 */
export async function verifyNewCredential(
  given: Pick<AddPasskey, 'clientDataJSON' | 'attestationObject'>,
  { relyingParty, isChallenge }: Expected,
): Promise<NewCredential | null> {
  const { verifyRegistrationResponse } = await load()
  const { decodeAttestationObject, isoCBOR } = await import('@simplewebauthn/server/helpers')

  /**
   * Returns an attestation object without its statement about the make of the authenticator. None is asked for and none
   * is trusted, and verifying one would read certificates, and lists of revoked ones at URLs that they name.
   */
  function withoutStatement(encoded: string): string {
    const authData = decodeAttestationObject(Uint8Array.from(Buffer.from(encoded, 'base64url'))).get('authData')
    const bare = new Map<string, string | Uint8Array | Map<string, never>>([
      ['fmt', 'none'],
      ['attStmt', new Map<string, never>()],
      ['authData', authData],
    ])
    return Buffer.from(isoCBOR.encode(bare)).toString('base64url')
  }

  try {
    const attestationObject = withoutStatement(given.attestationObject)
    const { verified, registrationInfo } = await verifyRegistrationResponse({
      response: {
        // The id in the attestation object is the one that is stored.
        id: 'x',
        rawId: 'x',
        type: 'public-key',
        response: { clientDataJSON: given.clientDataJSON, attestationObject },
        clientExtensionResults: {},
      },
      expectedChallenge: isChallenge,
      expectedOrigin: relyingParty.origin,
      expectedRPID: relyingParty.id,
      requireUserVerification: true,
      supportedAlgorithmIDs: [...algorithms],
    })
    if (!verified) return null
    const { credential, credentialBackedUp } = registrationInfo
    const credentialId = Buffer.from(credential.id, 'base64url')
    if (credentialId.length > maxCredentialIdBytes || credential.publicKey.length > maxPublicKeyBytes) return null
    return {
      credentialId,
      publicKey: Buffer.from(credential.publicKey),
      counter: credential.counter,
      isSynced: credentialBackedUp,
    }
  } catch {
    // The library throws for every fault of what it is given.
    return null
  }
}

/** The data of a verified signature of a stored credential. */
export type Assertion = { counter: number; isSynced: boolean }

/**
 * Verifies what a stored credential signed. Returns null when the signature is not right, not for this service, not for
 * the challenge, or without user verification. Does not compare counters: that is for the transaction that stores them.
 *
 * Source: Web Authentication Level 3 §7.2.
 */
export async function verifyAssertion(
  given: SignInWithPasskey,
  { publicKey, relyingParty, isChallenge }: Expected & { publicKey: Buffer },
): Promise<Assertion | null> {
  const { verifyAuthenticationResponse } = await load()
  const { credentialId: id, ...response } = given
  try {
    const { verified, authenticationInfo } = await verifyAuthenticationResponse({
      response: { id, rawId: id, type: 'public-key', response, clientExtensionResults: {} },
      expectedChallenge: isChallenge,
      expectedOrigin: relyingParty.origin,
      expectedRPID: relyingParty.id,
      requireUserVerification: true,
      credential: { id, publicKey: Uint8Array.from(publicKey), counter: 0 },
    })
    return verified ? { counter: authenticationInfo.newCounter, isSynced: authenticationInfo.credentialBackedUp } : null
  } catch {
    // The library throws for every fault of what it is given.
    return null
  }
}

/**
 * Returns true when a counter is not above the one stored, so that there may be a copy of the credential. Many
 * authenticators do not count, and leave it at 0.
 *
 * Source: Web Authentication Level 3 §6.1.1.
 */
export function wentBack(counter: number, stored: number): boolean {
  return (counter > 0 || stored > 0) && counter <= stored
}
