import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Provider } from 'oidc-provider'
import type { ProviderSettings } from '../../server/users/provider/client.ts'
import type { Answer } from './client.ts'
import { goodPassword, type Person, pageHeaders } from './people.ts'
import type { TestService } from './service.ts'

/** A real OpenID Connect provider, in this process. */
export type IdentityProvider = AsyncDisposable & {
  settings: ProviderSettings
  /** Signs a person in at the page of a request. Returns where the provider leads the browser. */
  signIn(url: string, login: string): Promise<URL>
}

const client = { clientId: 'postern', clientSecret: 'a secret of the tests, 32 bytes at least' }

/** @param options.redirectUri The page that it leads back to. @param options.port Default: any free one. */
export async function startIdentityProvider({
  redirectUri,
  port = 0,
}: {
  redirectUri: () => string
  port?: number
}): Promise<IdentityProvider> {
  const server = createServer((req, res) => provider()(req, res))
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  let callback: ReturnType<Provider['callback']> | undefined
  // Made with the first request: the service, which listens later, is what it leads back to.
  const provider = () => {
    callback ??= new Provider(issuer, {
      clients: [{ client_id: client.clientId, client_secret: client.clientSecret, redirect_uris: [redirectUri()] }],
      claims: { email: ['email'] },
      conformIdTokenClaims: false,
      cookies: { keys: ['of the tests'] },
      findAccount: (_: unknown, id: string) => ({
        accountId: id,
        claims: () => ({ sub: id, email: `${id}@example.com`, email_verified: true }),
      }),
    }).callback()
    return callback
  }

  return {
    settings: { issuer, ...client, name: 'Example <b>' },
    signIn: (url, login) => signInAt(issuer, { url, login }),
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** Follows the pages of the provider as a browser does, until it leads elsewhere. */
async function signInAt(issuer: string, { url, login }: { url: string; login: string }): Promise<URL> {
  const cookies = new Map<string, string>()
  let next = new URL(url)
  let form: URLSearchParams | null = null
  for (let step = 0; step < 12; step += 1) {
    const answer: Response = await fetch(next, {
      redirect: 'manual',
      headers: { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; ') },
      ...(form !== null && { method: 'POST', body: form }),
    })
    for (const cookie of answer.headers.getSetCookie()) {
      const [name = '', value = ''] = cookie.split(';', 1)[0]?.split('=') ?? []
      cookies.set(name, value)
    }
    const location = answer.headers.get('location')
    if (location !== null) {
      next = new URL(location, next)
      form = null
      if (next.origin !== issuer) return next
      continue
    }
    const page = await answer.text()
    const prompt = /name="prompt" value="(\w+)"/.exec(page)?.[1]
    if (prompt === undefined) throw new Error(`the provider answered ${answer.status}: ${page.slice(0, 500)}`)
    const action = /action="([^"]+)"/.exec(page)?.[1] ?? ''
    next = new URL(action, next)
    form = new URLSearchParams({ prompt, ...(prompt === 'login' && { login, password: 'any' }) })
  }
  throw new Error('the provider leads nowhere')
}

/** A request to the provider: its page, and the cookie that the browser carries. */
export type Begun = { url: string; cookie: string }

/** Reads an answer that began a request. Throws when it did not. */
function begunIn({ status, body, headers, text }: Answer): Begun {
  const pending = /postern_provider=([^;]+)/.exec(headers['set-cookie'] ?? '')?.[1]
  if (status !== 200 || pending === undefined) throw new Error(`beginning answered ${status}: ${text}`)
  return { url: Object(body).url, cookie: `postern_provider=${pending}` }
}

/** Begins to sign in at a service. */
export async function beginSignIn({ client, url }: Pick<TestService, 'client' | 'url'>): Promise<Begun> {
  const options = { key: null, headers: pageHeaders(url), json: {} }
  return begunIn(await client.send('POST', '/v1/session/provider/options', options))
}

/** Begins to link a user. */
export async function beginLink(person: Person): Promise<Begun> {
  return begunIn(await person.send('POST', '/v1/user/identities/options', { json: { password: goodPassword } }))
}

/** Returns the query parameters that the provider added to the redirect URL. */
export function answerIn(url: URL): Record<string, string> {
  return Object.fromEntries(url.searchParams)
}

/** Returns the cookie header and the body with which a user links themselves to a person at the provider. */
export async function linkRequest(provider: IdentityProvider, person: Person, login: string) {
  const { url, cookie } = await beginLink(person)
  const json = answerIn(await provider.signIn(url, login))
  return { json, headers: { cookie: `${person.headers().cookie}; ${cookie}` } }
}
