import type { Configuration } from 'openid-client'
import type { ProviderAnswer } from '../../../contract/identities.ts'
import { printable } from '../../lib/printable.ts'
import type { Subject } from './queries.ts'

/** The identity provider of the settings. */
export type ProviderSettings = {
  /** The issuer identifier. Discovery reads `/.well-known/openid-configuration` below it. */
  issuer: string
  clientId: string
  clientSecret: string
  /** The name that users see. */
  name: string
}

/** The values that an answer of the provider is checked with. Secret until then. */
export type Expected = { state: string; nonce: string; verifier: string }

/** A person who signed in at the provider. */
export type Person = Subject & { label: string | null }

/**
 * A provider cannot be asked: it is out of reach, answers what no provider answers, or refuses this service.
 * `cause` says why, for the log.
 */
export class ProviderFault extends Error {
  override name = 'ProviderFault'
}

/** Speaks OpenID Connect with one provider: the code flow with PKCE (S256), state and nonce. */
export type ProviderClient = {
  /** Returns the page that a user signs in on. Throws a ProviderFault. */
  begin(): Promise<Expected & { url: string }>
  /**
   * Exchanges the code, and verifies the ID token with its signature. Returns null when the answer is not the expected
   * one: another state or issuer (RFC 9207), a code that was used or made for another request. Throws a ProviderFault.
   *
   * Source: OpenID Connect Core 1.0 §3.1.3.
   */
  finish(answer: ProviderAnswer, expected: Expected): Promise<Person | null>
}

/** Longest wait for one answer of the provider. Seconds. */
const timeoutSeconds = 10
/** Longest subject that a provider may give. Characters. Source: OpenID Connect Core 1.0 §2. */
const maxSubject = 255

/** Loaded when the provider is used first. */
const load = () => import('openid-client')

/** @param redirectUri Returns the page that the provider leads back to. */
export function createProviderClient(settings: ProviderSettings, redirectUri: () => string): ProviderClient {
  let discovered: Promise<Configuration> | null = null

  async function discover(): Promise<Configuration> {
    const oidc = await load()
    const { issuer, clientId, clientSecret } = settings
    const byBasic = oidc.ClientSecretBasic(clientSecret)
    const byPost = oidc.ClientSecretPost(clientSecret)
    const url = new URL(issuer)
    const config = await oidc.discovery(
      url,
      clientId,
      undefined,
      // Without the list, providers take Basic. Source: OpenID Connect Discovery 1.0 §3.
      (server, ...rest) => {
        const methods = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic']
        return (methods.includes('client_secret_basic') ? byBasic : byPost)(server, ...rest)
      },
      { timeout: timeoutSeconds, execute: url.protocol === 'http:' ? [oidc.allowInsecureRequests] : [] },
    )
    oidc.enableNonRepudiationChecks(config)
    return config
  }

  /** Discovers once. A failure is not kept, so that the next user tries again. */
  async function configuration(): Promise<Configuration> {
    discovered ??= discover()
    try {
      return await discovered
    } catch (cause) {
      discovered = null
      throw new ProviderFault(`the identity provider ${settings.issuer} cannot be discovered`, { cause })
    }
  }

  return {
    async begin() {
      const config = await configuration()
      const oidc = await load()
      const expected = {
        state: oidc.randomState(),
        nonce: oidc.randomNonce(),
        verifier: oidc.randomPKCECodeVerifier(),
      }
      const { href: url } = oidc.buildAuthorizationUrl(config, {
        redirect_uri: redirectUri(),
        scope: 'openid email',
        state: expected.state,
        nonce: expected.nonce,
        code_challenge: await oidc.calculatePKCECodeChallenge(expected.verifier),
        code_challenge_method: 'S256',
      })
      return { ...expected, url }
    },
    async finish({ code, state, iss }, { verifier, ...expected }) {
      const config = await configuration()
      const oidc = await load()
      const url = new URL(redirectUri())
      url.search = new URLSearchParams({ code, state, ...(iss !== undefined && { iss }) }).toString()
      try {
        const tokens = await oidc.authorizationCodeGrant(config, url, {
          pkceCodeVerifier: verifier,
          expectedState: expected.state,
          expectedNonce: expected.nonce,
          idTokenExpected: true,
        })
        const claims = tokens.claims()
        // PostgreSQL stores neither the character NUL nor half of a surrogate pair: two subjects could become one.
        if (claims === undefined || claims.sub.length > maxSubject || /[\p{Cc}\p{Cs}]/u.test(claims.sub)) return null
        const label = typeof claims.email === 'string' ? printable(claims.email.slice(0, 254)).toWellFormed() : null
        return { issuer: claims.iss, subject: claims.sub, label }
      } catch (cause) {
        if (isRefused(cause, oidc)) return null
        throw new ProviderFault(`the identity provider ${settings.issuer} did not answer as one`, { cause })
      }
    },
  }
}

/** Returns true for a fault of the answer that a browser brought, and false for one of the provider or the settings. */
function isRefused(error: unknown, oidc: typeof import('openid-client')): boolean {
  if (error instanceof oidc.ResponseBodyError) return error.error === 'invalid_grant' && error.status < 500
  if (error instanceof oidc.AuthorizationResponseError) return true
  // Of what is compared with the answer of the browser: `state`, `iss`, and the nonce of the ID token.
  const refusals = ['OAUTH_INVALID_RESPONSE', 'OAUTH_JWT_CLAIM_COMPARISON_FAILED']
  return error instanceof oidc.ClientError && refusals.includes(error.code ?? '')
}
