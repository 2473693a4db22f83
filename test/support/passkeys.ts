import {
  maxPasskeys,
  type NewPasskeyOptions,
  type PasskeyChallenge,
  type SignInWithPasskey,
} from '../../contract/passkeys.ts'
import { newId } from '../../server/shared/ids.ts'
import { stepAt, totpCode } from '../../server/users/totp.ts'
import { type Authenticator, createAuthenticator, type Deviation } from './authenticator.ts'
import type { Answer } from './client.ts'
import type { TestTime } from './clock.ts'
import { goodPassword, type Person, pageHeaders } from './people.ts'
import type { TestService } from './service.ts'

type Reached = Pick<TestService, 'client' | 'url'>

/** The origin of the pages that passkeys of a test service work on. */
export function passkeyOrigin({ url }: Pick<TestService, 'url'>): string {
  return `http://localhost:${new URL(url).port}`
}

/** Asks for what a passkey is made with. Throws when that is refused. */
export async function optionsFor(person: Person): Promise<NewPasskeyOptions> {
  const answer = await person.send('POST', '/v1/user/passkeys/options', { json: { password: goodPassword } })
  if (answer.status !== 200) throw new Error(`the options answered ${answer.status}: ${answer.text}`)
  return answer.body as NewPasskeyOptions
}

/** Adds a passkey. Returns the answer as it is. */
export async function tryToAdd(
  person: Person,
  authenticator: Authenticator,
  deviation: Deviation = {},
): Promise<Answer> {
  const json = { name: 'Laptop', ...authenticator.create(await optionsFor(person), deviation) }
  return person.send('POST', '/v1/user/passkeys', { json })
}

/** Returns a new passkey as it is sent, with its name. */
export async function newCredential(service: Reached, person: Person) {
  const authenticator = createAuthenticator({ origin: passkeyOrigin(service) })
  return { name: 'Laptop', ...authenticator.create(await optionsFor(person)) }
}

/** Adds a passkey to a user. Returns its authenticator and its id. */
export async function addPasskey(
  service: Reached,
  person: Person,
  options: { isSynced?: boolean; counts?: boolean } = {},
): Promise<{ id: string; authenticator: Authenticator }> {
  const authenticator = createAuthenticator({ origin: passkeyOrigin(service), ...options })
  const answer = await tryToAdd(person, authenticator)
  if (answer.status !== 201) throw new Error(`adding a passkey answered ${answer.status}: ${answer.text}`)
  return { id: Object(answer.body).id, authenticator }
}

/** Asks for a challenge to sign in. */
export async function challengeOf({ client, url }: Reached): Promise<PasskeyChallenge> {
  const answer = await client.send('POST', '/v1/session/passkey/options', { key: null, headers: pageHeaders(url) })
  return answer.body as PasskeyChallenge
}

/** Sends what a passkey answered. */
export function send({ client, url }: Reached, json: SignInWithPasskey, cookie?: string): Promise<Answer> {
  const headers = { ...pageHeaders(url), ...(cookie !== undefined && { cookie }) }
  return client.send('POST', '/v1/session/passkey', { key: null, headers, json })
}

/** Signs in with a passkey. Returns the answer as it is. */
export async function signInWith(
  service: Reached,
  authenticator: Authenticator,
  deviation: Deviation = {},
): Promise<Answer> {
  return send(service, authenticator.get(await challengeOf(service), deviation))
}

/** Returns the status of an answer that is on its way. */
export const statusOf = async (answer: Promise<Answer>) => (await answer).status
/** Returns the error of an answer. */
export const errorOf = ({ body }: Answer) => Object(body).error

/** Returns the passkeys of a user as the API lists them. */
export async function passkeysOf(person: Person): Promise<Record<string, unknown>[]> {
  return Object((await person.send('GET', '/v1/user/passkeys')).body).data
}

/** Gives a user a second factor. Returns a function that returns its present code. */
export async function enableTotp(person: Person, time: TestTime): Promise<() => string> {
  const { body } = await person.send('POST', '/v1/user/totp', { json: { password: goodPassword } })
  const code = () => totpCode(String(Object(body).secret), stepAt(time.clock.now()))
  const confirmed = await statusOf(person.send('POST', '/v1/user/totp/confirm', { json: { code: code() } }))
  if (confirmed !== 200) throw new Error(`confirming the second factor answered ${confirmed}`)
  await time.advance(30_000)
  return code
}

/** Gives a user as many passkeys as a user can have. No authenticator has them. */
export async function fillPasskeys(
  { database, clock }: Pick<TestService, 'database' | 'clock'>,
  { userId }: Person,
): Promise<void> {
  const rows = Array.from({ length: maxPasskeys }, (_, index) => ({
    id: newId('passkey', clock.now()),
    user_id: userId,
    credential_id: Buffer.from(`${userId} ${index}`),
    public_key: Buffer.alloc(0),
    counter: 0,
    transports: [],
    is_synced: false,
    name: 'Laptop',
    created_at: clock.now(),
    last_used_at: null,
    refused_at: null,
  }))
  await database.db.insertInto('passkeys').values(rows).execute()
}
