import type { CreatePortalSession } from '../../contract/portal-sessions.ts'
import type { Answer, SendOptions } from './client.ts'
import { pageHeaders } from './people.ts'
import type { TestService } from './service.ts'

/** A customer of the account who has opened the portal. */
export type Customer = {
  sessionId: string
  token: string
  /** The cookies that opening it has set, as a browser sends them. */
  cookie: string
  /** Sends a request of the portal, with its token. */
  send(method: string, path: string, options?: Omit<SendOptions, 'key'>): Promise<Answer>
}

type Making = Partial<CreatePortalSession> & { key?: string }

/** Makes a portal session and returns its link. */
export async function makePortalLink(service: TestService, making: Making = {}): Promise<string> {
  const { key = service.keys.live, ...body } = making
  const json = { customer: '42', ...body }
  const answer = await service.client.send('POST', '/v1/portal-sessions', { key, json })
  if (answer.status !== 201) throw new Error(`making a portal session answered ${answer.status}: ${answer.text}`)
  return String(Object(answer.body).url)
}

/** Uses a link of a portal session as its page does. */
export function openLink({ client, url }: Pick<TestService, 'client' | 'url'>, link: string): Promise<Answer> {
  const code = link.slice(link.indexOf('#code=') + 6)
  return client.send('POST', '/v1/portal-session', { key: null, headers: pageHeaders(url), json: { code } })
}

/** Makes a portal session for a customer and opens it. */
export async function openPortal(service: TestService, making: Making = {}): Promise<Customer> {
  const answer = await openLink(service, await makePortalLink(service, making))
  if (answer.status !== 201) throw new Error(`opening the portal answered ${answer.status}: ${answer.text}`)
  const { id: sessionId, token } = Object(answer.body)
  return {
    sessionId,
    token,
    cookie: (answer.headers['set-cookie'] ?? '').split(';')[0] ?? '',
    send: (method, path, options = {}) => service.client.send(method, path, { ...options, key: token }),
  }
}
