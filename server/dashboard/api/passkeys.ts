import {
  type AuthenticatorTransport,
  browserSupportsWebAuthn,
  browserSupportsWebAuthnAutofill,
  startAuthentication,
  startRegistration,
  WebAuthnAbortService,
  WebAuthnError,
} from '@simplewebauthn/browser'
import { useQuery } from '@tanstack/react-query'
import { ApiError, type Input } from './client.ts'
import { callForUser } from './query-client.ts'
import type { Session } from './scope.tsx'

/** How users can sign in, besides email address and password. Undefined: not read yet. */
export function useSignInMethods() {
  return useQuery({
    queryKey: ['sign-in methods'],
    queryFn: () => callForUser('GET /v1/sign-in-methods', {}),
    staleTime: Number.POSITIVE_INFINITY,
  }).data
}

/** Returns true when this browser has passkeys and this page is one that they work on. */
export function worksHere(origin: string | null | undefined): boolean {
  return origin === window.location.origin && browserSupportsWebAuthn()
}

/** Returns true when the browser offers passkeys where an address is typed. */
export const hasAutofill = browserSupportsWebAuthnAutofill

/** Ends the dialog of the browser, or its offer where an address is typed. */
export function cancelPasskey(): void {
  WebAuthnAbortService.cancelCeremony()
}

/**
 * Signs in with a passkey that the user chooses. Null: it was cancelled by `cancelPasskey`, or by another call. Throws an
 * ApiError when the API refuses it, and when the user has chosen none.
 *
 * @param isOffered Waits until the user chooses one where an address is typed. Otherwise the browser asks at once.
 */
export async function signInWithPasskey({ isOffered }: { isOffered: boolean }): Promise<Session | null> {
  const optionsJSON = await callForUser('POST /v1/session/passkey/options', {})
  try {
    const { id, response } = await startAuthentication({ optionsJSON, useBrowserAutofill: isOffered })
    const { clientDataJSON, authenticatorData, signature, userHandle = '' } = response
    const body = { credentialId: id, clientDataJSON, authenticatorData, signature, userHandle }
    return await callForUser('POST /v1/session/passkey', { body })
  } catch (error) {
    if (error instanceof WebAuthnError && error.code === 'ERROR_CEREMONY_ABORTED') return null
    throw asApiError(error, 'No passkey was used. Try again, or sign in in another way.')
  }
}

type Made = Omit<Input<'POST /v1/user/passkeys'>['body'], 'name'>

/** Has the browser make a passkey. Throws an ApiError when the API or the user refuses, and when there is one already. */
export async function makePasskey(proof: Input<'POST /v1/user/passkeys/options'>['body']): Promise<Made> {
  const { excludeCredentials, ...options } = await callForUser('POST /v1/user/passkeys/options', { body: proof })
  const exclude = excludeCredentials.map(({ transports, ...one }) => ({
    ...one,
    transports: transports.filter(isTransport),
  }))
  try {
    const { response } = await startRegistration({ optionsJSON: { ...options, excludeCredentials: exclude } })
    const { clientDataJSON, attestationObject, transports = [] } = response
    return { clientDataJSON, attestationObject, transports: transports.filter(isTransport) }
  } catch (error) {
    if (error instanceof WebAuthnError && error.code === 'ERROR_AUTHENTICATOR_PREVIOUSLY_REGISTERED') {
      throw refusal('This device has a passkey of yours already.', error)
    }
    throw asApiError(error, 'No passkey was made. Try again, and confirm it in the dialog of the browser.')
  }
}

/** Source: Web Authentication Level 3 §5.8.4. */
const transports: readonly string[] = ['ble', 'cable', 'hybrid', 'internal', 'nfc', 'smart-card', 'usb']

function isTransport(text: string): text is AuthenticatorTransport {
  return transports.includes(text)
}

/** Browsers tell with one error that the user has cancelled, waited too long or has no passkey. */
function asApiError(error: unknown, message: string): ApiError {
  return error instanceof ApiError ? error : refusal(message, error)
}

function refusal(message: string, cause: unknown): ApiError {
  return new ApiError({ status: 401, code: 'authentication_error', message }, { cause })
}
