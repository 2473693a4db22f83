import { hash } from 'node:crypto'
import type { Page, PageQuery } from '../../../contract/pagination.ts'
import {
  type AddPasskey,
  maxPasskeys,
  type NewPasskeyOptions,
  type Passkey,
  type PasskeyChallenge,
  type ProveAgain,
  passkeyMinutes,
  type SignInWithPasskey,
} from '../../../contract/passkeys.ts'
import { type Db, type Handle, inTransaction, type Trx } from '../../database/connection.ts'
import type { Clock } from '../../lib/clock.ts'
import { DomainError } from '../../shared/errors.ts'
import { newId } from '../../shared/ids.ts'
import { decodeCursor, pageOfRows } from '../../shared/pagination.ts'
import type { Prove } from '../proof.ts'
import { getUser, lockUser, type UserRow } from '../queries.ts'
import { recordInAccounts } from '../records.ts'
import { findSession } from '../session-queries.ts'
import { authorOf, type Client, type SignedIn, type StartedSession, startSession } from '../sessions.ts'
import type { Challenges, ValidChallenge } from './challenges.ts'
import {
  countPasskeys,
  deletePasskey,
  findPasskeyByCredential,
  insertPasskey,
  lockPasskey,
  type PasskeyRow,
  selectPasskeys,
  updatePasskey,
  useChallenge,
} from './queries.ts'
import type { RelyingParty } from './relying-party.ts'
import { algorithms, verifyAssertion, verifyNewCredential, wentBack } from './verify.ts'

const product = 'Postern'
const timeoutMs = passkeyMinutes * 60_000

/** The passkeys of users. Throws DomainErrors. */
export type PasskeyService = {
  /** Returns what a browser asks any passkey of the service with. Stores nothing. */
  challenge(): PasskeyChallenge
  /**
   * Starts a session of the user that the passkey belongs to. It verifies its user itself, so neither password nor second
   * factor is asked for. Throws `authentication_error` when the passkey is unknown, the signature or the challenge is not
   * right, or the counter went back; the last one is recorded.
   *
   * @param formerToken The token that the browser sent. The session of the user with it ends: the browser forgets it.
   */
  signIn(db: Db, given: SignInWithPasskey, client: Client, formerToken?: string | null): Promise<StartedSession>
  list(handle: Handle, signedIn: SignedIn, page: PageQuery): Promise<Page<Passkey>>
  /**
   * Returns what a browser makes a passkey with, after proving again who the user is. Throws what that throws, and
   * `conflict` for a user who has as many as a user can have.
   */
  options(db: Db, signedIn: SignedIn, given: { proof: ProveAgain; client: Client }): Promise<NewPasskeyOptions>
  /**
   * Stores a passkey that was made with these options in this session. Throws `authentication_error` when it was not, or
   * the password was changed meanwhile, and `conflict` when it is stored already or is one too many.
   */
  add(db: Db, signedIn: SignedIn, given: { passkey: AddPasskey; client: Client }): Promise<Passkey>
  /** Throws `not_found`. */
  rename(db: Db, signedIn: SignedIn, given: { id: string; name: string; client: Client }): Promise<Passkey>
  /** Throws `not_found`. */
  remove(db: Db, signedIn: SignedIn, given: { id: string; client: Client }): Promise<void>
}

/** @property relyingParty Returns the service that passkeys belong to. */
export type PasskeyOptions = {
  clock: Clock
  challenges: Challenges
  prove: Prove
  relyingParty: () => RelyingParty
}

export function createPasskeyService({ clock, challenges, prove, relyingParty }: PasskeyOptions): PasskeyService {
  /** Returns how a challenge is checked, and the valid one once that was done. */
  function expecting(binding: string) {
    let valid: ValidChallenge | null = null
    const isChallenge = (challenge: string): boolean => {
      valid = challenges.check(challenge, binding)
      return valid !== null
    }
    return { expected: { relyingParty: relyingParty(), isChallenge }, valid: () => valid }
  }

  /** Checks what can have changed since the signature was verified. Returns the error that is to be thrown, if any. */
  async function judge(
    trx: Trx,
    { passkey, user, client, counter }: { passkey: PasskeyRow; user: UserRow; client: Client; counter: number },
  ): Promise<DomainError | null> {
    const own = { id: passkey.id, userId: user.id }
    const stored = await lockPasskey(trx, own)
    if (stored === undefined) return unknownPasskey()
    if (!wentBack(counter, Number(stored.counter))) return null
    const at = clock.now()
    await updatePasskey(trx, own, { refused_at: at })
    const details = { passkey: stored.name }
    await recordInAccounts(trx, { at, author: authorOf(user, client), action: 'passkey.refused', user, details })
    return new DomainError(
      'authentication_error',
      'This passkey was refused: its counter went back, so there may be a copy of it. Sign in in another way and remove it.',
    )
  }

  return {
    challenge: () => ({
      challenge: challenges.make(signInBinding),
      rpId: relyingParty().id,
      timeout: timeoutMs,
      userVerification: 'required',
    }),
    async signIn(db, given, client, formerToken = null) {
      const passkey = await findPasskeyByCredential(db, Buffer.from(given.credentialId, 'base64url'))
      if (passkey === undefined || passkey.user_id !== textOf(given.userHandle)) throw unknownPasskey()
      const { expected, valid } = expecting(signInBinding)
      const assertion = await verifyAssertion(given, { ...expected, publicKey: passkey.public_key })
      const challenge = valid()
      if (assertion === null || challenge === null) throw notAccepted()
      const { counter, isSynced } = assertion
      const started = await inTransaction(db, async (trx) => {
        const user = await lockUser(trx, passkey.user_id)
        if (!(await useChallenge(trx, challenge))) return notAccepted()
        const fault = await judge(trx, { passkey, user, client, counter })
        if (fault !== null) return fault
        const at = clock.now()
        await updatePasskey(
          trx,
          { id: passkey.id, userId: user.id },
          { counter, is_synced: isSynced, last_used_at: at },
        )
        return startSession(trx, { user, client, at, formerToken, by: 'passkey' })
      })
      // Thrown here alone: that the counter went back is recorded by now.
      if (started instanceof DomainError) throw started
      return started
    },
    async list(handle, { userId }, { limit, cursor }) {
      const rows = await selectPasskeys(handle, userId, { limit, after: decodeCursor('passkey', cursor) })
      return pageOfRows(rows, { limit, idOf: ({ id }) => id, toItem: toPasskey })
    },
    async options(db, signedIn, given) {
      const user = await prove(db, signedIn, given)
      const present = await selectPasskeys(db, user.id, { limit: maxPasskeys })
      if (present.length >= maxPasskeys) throw tooMany()
      return {
        rp: { id: relyingParty().id, name: product },
        user: { id: Buffer.from(user.id).toString('base64url'), name: user.email, displayName: user.name },
        challenge: challenges.make(addBinding(user, signedIn)),
        pubKeyCredParams: algorithms.map((alg) => ({ type: 'public-key', alg })),
        timeout: timeoutMs,
        excludeCredentials: present.map(({ credential_id, transports }) => ({
          type: 'public-key',
          id: credential_id.toString('base64url'),
          transports,
        })),
        authenticatorSelection: { residentKey: 'required', requireResidentKey: true, userVerification: 'required' },
        attestation: 'none',
      }
    },
    async add(db, signedIn, { passkey, client }) {
      const { userId, sessionId } = signedIn
      const before = await getUser(db, userId)
      const { expected, valid } = expecting(addBinding(before, signedIn))
      const credential = await verifyNewCredential(passkey, expected)
      const challenge = valid()
      if (credential === null || challenge === null) throw notAccepted()
      return inTransaction(db, async (trx) => {
        const user = await lockUser(trx, userId)
        const isProved = user.password_hash === before.password_hash
        // Both may have ended since the request began: what is added here would outlast them.
        if (!isProved || (await findSession(trx, { id: sessionId, userId })) === undefined) throw notAccepted()
        if (!(await useChallenge(trx, challenge))) throw notAccepted()
        if ((await countPasskeys(trx, userId)) >= maxPasskeys) throw tooMany()
        const at = clock.now()
        const row = await insertPasskey(trx, {
          id: newId('passkey', at),
          user_id: userId,
          credential_id: credential.credentialId,
          public_key: credential.publicKey,
          counter: credential.counter,
          transports: passkey.transports,
          is_synced: credential.isSynced,
          name: passkey.name.trim(),
          created_at: at,
        })
        if (row === undefined) throw new DomainError('conflict', 'This passkey is stored already.')
        const details = { passkey: row.name }
        await recordInAccounts(trx, { at, author: authorOf(user, client), action: 'passkey.added', user, details })
        return toPasskey(row)
      })
    },
    async rename(db, { userId }, { id, name, client }) {
      return inTransaction(db, async (trx) => {
        const user = await lockUser(trx, userId)
        const before = await lockPasskey(trx, { id, userId })
        const row = await updatePasskey(trx, { id, userId }, { name: name.trim() })
        if (before === undefined || row === undefined) throw notFound(id)
        const at = clock.now()
        const details = { from: before.name, to: row.name }
        await recordInAccounts(trx, { at, author: authorOf(user, client), action: 'passkey.renamed', user, details })
        return toPasskey(row)
      })
    },
    async remove(db, { userId }, { id, client }) {
      await inTransaction(db, async (trx) => {
        const user = await lockUser(trx, userId)
        const gone = await deletePasskey(trx, { id, userId })
        if (gone === undefined) throw notFound(id)
        const at = clock.now()
        const details = { passkey: gone.name }
        await recordInAccounts(trx, { at, author: authorOf(user, client), action: 'passkey.removed', user, details })
      })
    },
  }
}

const signInBinding = 'sign in'

/** A new passkey is for the user and session that proved the password, while the user has that password. */
function addBinding({ id, password_hash }: UserRow, { sessionId }: SignedIn): string {
  return `add ${id} ${sessionId} ${hash('sha256', password_hash ?? '')}`
}

function textOf(base64url: string): string {
  return Buffer.from(base64url, 'base64url').toString()
}

function unknownPasskey(): DomainError {
  return new DomainError(
    'authentication_error',
    'This passkey is not known here: it was removed, or belongs to another service. Sign in in another way.',
  )
}

function notAccepted(): DomainError {
  return new DomainError(
    'authentication_error',
    `The passkey was not accepted: its answer is older than ${passkeyMinutes} minutes, was used before, or is for another page. Try again.`,
  )
}

function tooMany(): DomainError {
  return new DomainError('conflict', `You have reached the limit of ${maxPasskeys} passkeys: remove one first.`)
}

function notFound(id: string): DomainError {
  return new DomainError('not_found', `You have no passkey with the id "${id}".`)
}

function toPasskey(row: PasskeyRow): Passkey {
  return {
    id: row.id,
    name: row.name,
    isSynced: row.is_synced,
    lastUsedAt: row.last_used_at?.toISOString() ?? null,
    refusedAt: row.refused_at?.toISOString() ?? null,
    createdAt: row.created_at.toISOString(),
  }
}
