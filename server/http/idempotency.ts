import { createHash, hash } from 'node:crypto'
import { type Db, type Handle, inTransaction } from '../database/connection.ts'
import type { Clock } from '../lib/clock.ts'
import { sliceYielding } from '../lib/yielding.ts'
import type { SecretBox } from '../secrets/secret-box.ts'
import { DomainError, invalidField } from '../shared/errors.ts'
import type { Actor, Author } from '../shared/scope.ts'
import { forgetRawBody, rawBodyOf } from './body.ts'
import { type Caller, callerOf } from './caller.ts'
import { clientAddressOf } from './client-address.ts'
import { tellDeprecated } from './deprecated.ts'
import { claimKey, type KeptAnswer, type KeyUse, keepAnswer, releaseKey } from './idempotency-keys.ts'
import { createLargeAnswers } from './large-responses.ts'
import type { Endpoint, RouteInput, RouteRequest } from './route-handler.ts'

const header = 'idempotency-key'
const maxKeyLength = 255
/** Bytes of a body that are hashed before yielding to the event loop, which takes a few milliseconds. */
const sliceBytes = 4 * 2 ** 20

type KeptResponse = { status: number; body: unknown }

export type EndpointOptions = {
  db: Db
  clock: Clock
  /** Seals the kept responses, which may hold secrets. */
  secretBox: SecretBox
}

/**
 * Creates the wrapper of all routes. A request without an `Idempotency-Key`, or to a route without idempotency, simply
 * runs. With a key, a successful response is kept for 24 hours and sent again with `Idempotent-Replayed: true`. Of
 * concurrent requests with the same key, one runs. A failed request keeps nothing, so that it can be tried again.
 *
 * Throws `validation_error` for a malformed key, and `idempotency_conflict` for a key that was used with another
 * request or whose request is still running.
 */
export function createEndpoint({ db, clock, secretBox }: EndpointOptions): Endpoint {
  const largeAnswers = createLargeAnswers()
  async function keep(handle: Handle, use: KeyUse, { status, body }: KeptResponse): Promise<void> {
    await keepAnswer(handle, use, { status, body: body === undefined ? null : secretBox.seal(JSON.stringify(body)) })
  }

  function replay(kept: KeptAnswer, { fingerprint }: KeyUse, { res }: RouteInput): KeptResponse {
    if (!kept.fingerprint.equals(fingerprint)) {
      throw new DomainError(
        'idempotency_conflict',
        'This Idempotency-Key was used with another request in the last 24 hours: use a new key for each request.',
      )
    }
    if (kept.status === null) {
      throw new DomainError(
        'idempotency_conflict',
        'The first request with this Idempotency-Key is still running: try again when it has been answered.',
      )
    }
    res.set('Idempotent-Replayed', 'true')
    return { status: kept.status, body: kept.body === null ? undefined : JSON.parse(secretBox.open(kept.body)) }
  }

  type Work = (handle: Handle) => Promise<KeptResponse>

  /** Keeps the response in the transaction of the work. A second request waits at the claim for the first. */
  function runWithWork(use: KeyUse, input: RouteInput, work: Work): Promise<KeptResponse> {
    return inTransaction(db, async (trx) => {
      const kept = await claimKey(trx, use)
      if (kept !== null) return replay(kept, use, input)
      const answer = await work(trx)
      await keep(trx, use, answer)
      return answer
    })
  }

  /** Commits the claim before the work and keeps the response after it, so that nothing is locked during the work. */
  async function runBeforeKeeping(use: KeyUse, input: RouteInput, work: Work): Promise<KeptResponse> {
    const kept = await claimKey(db, use)
    if (kept !== null) return replay(kept, use, input)
    let answer: KeptResponse
    try {
      answer = await work(db)
    } catch (error) {
      // The client must get the error of the work. A key that is not released here expires as abandoned.
      await releaseKey(db, use).catch(() => undefined)
      throw error
    }
    await keep(db, use, answer)
    return answer
  }

  return (handler) => async (input) => {
    const { req, res } = input
    const caller = callerOf(req)
    const { accountId, mode } = caller
    const scope = { accountId, mode, author: new RequestAuthor(req, caller.actor), portal: caller.portal }
    const { idempotency } = req.tsRestRoute.metadata
    const work = (handle: Handle) =>
      largeAnswers.during({ accountId, res }, (enterLarge) => handler(input, { scope, caller, handle, enterLarge }))
    const once = async (key: string) => {
      const fingerprint = await fingerprintOf(req, caller)
      const use = { accountId, key: storedKey(key, caller), fingerprint, at: clock.now() }
      return idempotency === 'with-work' ? runWithWork(use, input, work) : runBeforeKeeping(use, input, work)
    }
    const key = idempotency === 'none' ? undefined : idempotencyKeyOf(req)
    const answer = key === undefined ? await work(db) : await once(key)
    tellDeprecated(req, res)
    // The fingerprint includes the route, so a replayed response came from this handler.
    return answer as Awaited<ReturnType<typeof handler>>
  }
}

/**
 * Reads the address when it is asked for: few requests make a change that is in the audit log. A class, because an
 * object literal with a getter for each request took 5 % of its CPU time.
 */
class RequestAuthor implements Author {
  readonly actor: Actor
  readonly #req: RouteRequest

  constructor(req: RouteRequest, actor: Actor) {
    this.actor = actor
    this.#req = req
  }

  get ipAddress(): string | null {
    return clientAddressOf(this.#req.ip)
  }
}

function idempotencyKeyOf(req: RouteRequest): string | undefined {
  const given = req.headersDistinct[header]
  if (given === undefined) return undefined
  const [key = ''] = given
  if (given.length > 1) throw invalidField(`header.${header}`, 'must be given once')
  if (key.length > maxKeyLength || !/^[\x20-\x7e]+$/.test(key)) {
    throw invalidField(`header.${header}`, `must be 1 to ${maxKeyLength} printable ASCII characters`)
  }
  return key
}

/**
 * Returns the idempotency key as it is stored. In test mode it gets a prefix that no client can send, so that it never
 * collides with one of live mode; in the portal, one of its customer, so that no customer gets the answer of another or
 * of the account. In live mode it is stored unchanged, so that rows of older versions are found.
 */
function storedKey(key: string, { mode, portal }: Caller): string {
  const inMode = mode === 'live' ? key : `${mode}\u001f${key}`
  return portal === undefined ? inMode : `portal\u001f${hash('sha256', portal.customer, 'base64url')}\u001f${inMode}`
}

/**
 * Returns a hash of the method, path, body and, since test keys behave differently, the mode of the API key. Where the
 * response is kept for the caller alone, also of the caller.
 */
async function fingerprintOf(req: RouteRequest, { mode, actor }: Caller): Promise<Buffer> {
  const digest = createHash('sha256').update(`${mode}\n${req.method}\n${req.originalUrl}\n`)
  if (req.tsRestRoute.metadata.keptFor === 'caller') digest.update(`${actor.type} ${actor.id}\n`)
  await sliceYielding(rawBodyOf(req), sliceBytes, (slice) => digest.update(slice))
  forgetRawBody(req)
  return digest.digest()
}
