import type { Answer, SendOptions } from './client.ts'
import { type PathParameters, pathOf, unknownParameters } from './fixtures.ts'
import { answerIn, beginSignIn, type IdentityProvider } from './identity-provider.ts'
import { goodPassword, type Person, pageHeaders } from './people.ts'
import { type Operation, operations } from './published-spec.ts'
import type { TestService } from './service.ts'

/*
 * The operations of the published spec for people, which no key and no portal may call, and how a page of the dashboard
 * calls them.
 */

export const ofPeople = operations.filter(({ caller }) => caller !== 'key' && caller !== 'portal')
/** Those for operators of the service alone. */
export const ofOperators = ofPeople.filter(({ template }) => template.startsWith('/v1/operator/'))
/** Those of them on one account. */
export const ofAccounts = ofOperators.filter(({ parameters }) => parameters.path.length > 0).map(({ id }) => id)
export const named = (list: readonly Operation[]) => list.map((operation) => [operation.id, operation] as const)
export const declaring = (status: number) => named(ofPeople.filter(({ answers }) => answers.has(status)))
export const withBody = named(ofPeople.filter(({ body }) => body !== null))
export const needingSession = named(ofPeople.filter(({ caller }) => caller === 'session'))

export function codeOf({ body }: Answer): unknown {
  return Object(body).error?.code
}

type Target = Pick<TestService, 'client' | 'url'>
export type Call = Omit<SendOptions, 'key'> & { person?: Person; parameters?: PathParameters; suffix?: string }

/** Calls an operation as a page of the dashboard does, with the session of `person` if there is one. */
export function call(service: Target, operation: Operation, options: Call = {}): Promise<Answer> {
  const { person, parameters = unknownParameters(operation), suffix = '', headers, ...rest } = options
  return service.client.send(operation.method, pathOf(operation, parameters) + suffix, {
    ...rest,
    key: null,
    headers: { ...pageHeaders(service.url), ...person?.headers(), ...headers },
  })
}

/** A body of the right form for an operation that has one. It need not lead anywhere. */
export function bodyOf({ id, body }: Operation): { json?: unknown } {
  const token = 'x'.repeat(43)
  const bodies: Record<string, object> = {
    createSession: { email: 'ada@example.com', password: goodPassword },
    lookUpLink: { token },
    acceptLink: { token, password: goodPassword },
    requestPasswordReset: { email: 'ada@example.com' },
    updateUser: { name: 'Ada King' },
    confirmTotp: { code: '123456' },
    updateOperatorAccount: { plan: 'scale' },
    updateMember: { role: 'viewer' },
    createInvitation: { email: 'new-member@example.com', role: 'viewer' },
    createPasskeyChallenge: {},
    signInWithPasskey: {
      credentialId: 'AA',
      clientDataJSON: 'AA',
      authenticatorData: 'AA',
      signature: 'AA',
      userHandle: 'AA',
    },
    addPasskey: { name: 'Laptop', clientDataJSON: 'AA', attestationObject: 'AA' },
    updatePasskey: { name: 'Phone' },
    beginProviderSignIn: {},
    signInWithProvider: { code: 'x', state: 'x' },
    addIdentity: { code: 'x', state: 'x' },
    openPortalSession: { code: token },
  }
  return body === null ? {} : { json: bodies[id] ?? { password: goodPassword } }
}

/** Operations that need an identity provider. */
export const ofProvider = ['beginProviderSignIn', 'signInWithProvider', 'beginIdentity', 'addIdentity']

/** Returns the cookie header and the body with which a person signs in from the identity provider. */
export async function signInRequest(service: TestService, provider: IdentityProvider, login: string): Promise<Call> {
  const { url, cookie } = await beginSignIn(service)
  return { json: answerIn(await provider.signIn(url, login)), headers: { cookie } }
}
