import type { Role } from '../../contract/roles.ts'
import { commandLine } from '../../server/shared/scope.ts'
import { createMemberService } from '../../server/users/members.ts'
import { createUserOperatorService } from '../../server/users/operator.ts'
import type { Answer, SendOptions, TestClient } from './client.ts'
import type { TestService } from './service.ts'

/** A user of a test service who is signed in. */
export type Person = {
  userId: string
  email: string
  password: string
  /** The value of the session's cookie. */
  token: string
  /** The headers of a request of the dashboard in `accountId`. */
  headers(accountId?: string): Record<string, string>
  /** Sends a request of the dashboard. */
  send(method: string, path: string, options?: PersonOptions): Promise<Answer>
}

type PersonOptions = Omit<SendOptions, 'key'> & { accountId?: string }

export const goodPassword = 'correct horse battery staple'

let counter = 0

/** An address that no user has yet. */
function newAddress(): string {
  return `user-${++counter}@example.com`
}

/** The headers that every request of the dashboard has. */
export function pageHeaders(url: string): Record<string, string> {
  return { 'x-postern-dashboard': '1', origin: new URL(url).origin }
}

/** The value of the session's cookie in an answer. Throws when it has none. */
export function tokenIn({ headers }: Answer): string {
  const token = /postern_session=([^;]+)/.exec(headers['set-cookie'] ?? '')?.[1]
  if (token === undefined) throw new Error('the answer sets no session')
  return token
}

export type Inviting = { role?: Role; accountId?: string; email?: string }

/** Makes an invitation as the command line does. Returns the token of its link. */
export async function invite(service: TestService, options: Inviting = {}): Promise<string> {
  const { role = 'owner', accountId = service.accountId, email = newAddress() } = options
  const members = createMemberService({ clock: service.clock, serviceUrl: () => service.url })
  const { link } = await members.invite(service.database.db, { accountId, author: commandLine }, { email, role })
  if (link === null) throw new Error('the invitation went by email')
  return link.slice(link.indexOf('token=') + 6)
}

/** Makes a user by accepting an invitation. */
export async function signUp(service: TestService, options: Inviting = {}): Promise<Person> {
  const email = options.email ?? newAddress()
  const token = await invite(service, { ...options, email })
  const answer = await service.client.send('POST', '/v1/links/accept', {
    key: null,
    headers: pageHeaders(service.url),
    json: { token, name: 'Ada Lovelace', password: goodPassword },
  })
  if (answer.status !== 201) throw new Error(`accepting an invitation answered ${answer.status}: ${answer.text}`)
  return personOf(service, { email, answer, ...(options.accountId && { accountId: options.accountId }) })
}

/** Makes a user as `signUp` does, and marks them as an operator as the command line does. */
export async function signUpOperator(service: TestService, options: Inviting = {}): Promise<Person> {
  const person = await signUp(service, options)
  const users = createUserOperatorService({ clock: service.clock, serviceUrl: () => service.url })
  await users.setOperator(service.database.db, person.email, true)
  return person
}

/** Signs in. Returns the answer as it is. */
export function signIn(
  { client, url }: Pick<TestService, 'client' | 'url'>,
  json: { email: string; password?: string; code?: string },
): Promise<Answer> {
  const body = { password: goodPassword, ...json }
  return client.send('POST', '/v1/session', { key: null, headers: pageHeaders(url), json: body })
}

/** The person that an answer with a session is about. */
export function personOf(
  service: Pick<TestService, 'client' | 'url' | 'accountId'>,
  { email, answer, accountId: own = service.accountId }: { email: string; answer: Answer; accountId?: string },
): Person {
  const token = tokenIn(answer)
  const headers = (accountId: string = own) => ({
    ...pageHeaders(service.url),
    cookie: `postern_session=${token}`,
    'x-postern-account': accountId,
  })
  const send: TestClient['send'] = (method, path, options: PersonOptions = {}) => {
    const { accountId, headers: more, ...rest } = options
    return service.client.send(method, path, { ...rest, key: null, headers: { ...headers(accountId), ...more } })
  }
  const { id: userId } = Object(answer.body).user
  return { userId, email, password: goodPassword, token, headers, send }
}
