import type { Brand } from '../../contract/brand.ts'
import { simulatorDomain } from '../../contract/simulator.ts'
import { confirmationLimits } from '../audiences/confirmation.ts'
import { type ContactStanding, findStanding } from '../audiences/standing.ts'
import { type Handle, inTransaction, type Trx } from '../database/connection.ts'
import { addressKey } from '../message/address.ts'
import type { ConfirmationRef, ConfirmationTokens } from '../message/confirmation-tokens.ts'
import { changePerson, lockPerson, type PeopleDependencies } from '../subscribers/people.ts'
import type { SuppressionService } from '../suppressions/service.ts'
import { removeUnsubscribe } from '../suppressions/unsubscribed.ts'

/**
 * The state of a link to confirm. `asks`: the person can confirm. `confirmed`: they have confirmed. `gone`: the
 * contact, the person or the audience is not there any more, or the person has another address. `expired`: the link is
 * too old. `unsubscribed`: the person unsubscribed since they were asked, or from everything. `suppressed`: nothing can
 * be sent to the address. `test`: the email was sent with a test key, whose links confirm only recipients of the
 * simulator.
 */
export type ConfirmationState = 'asks' | 'confirmed' | 'gone' | 'expired' | 'unsubscribed' | 'suppressed' | 'test'

export type ConfirmationPage = { brand: Brand; audienceName: string | null; state: ConfirmationState }

/** The actions of the links to confirm. */
export type Confirmations = {
  /** Returns what the page of a link shows. Changes nothing. Null: the token is not valid, or the account is gone. */
  show(token: string): Promise<ConfirmationPage | null>
  /**
   * Confirms where the page `asks`, with `contact.updated`. Does nothing otherwise. Returns what the page shows then;
   * `too often`: for the address, in this process.
   */
  confirm(token: string): Promise<ConfirmationPage | null | 'too often'>
}

export type ConfirmationsOptions = PeopleDependencies & {
  handle: Handle
  tokens: Pick<ConfirmationTokens, 'read'>
  findBrand: (handle: Handle, accountId: string) => Promise<Brand | null>
  findSuppressed: SuppressionService['find']
  /** Counts a change for a person. False: there were too many. */
  takeChange: (person: string) => boolean
}

export function createConfirmations(options: ConfirmationsOptions): Confirmations {
  const { clock, outbox, handle, tokens, findBrand, findSuppressed, takeChange } = options

  /** Returns what a link finds, and whether an unsubscription that is older than the email is to be taken back. */
  async function look(on: Handle, ref: ConfirmationRef): Promise<{ state: ConfirmationState; lifts: boolean }> {
    const standing = await findStanding(on, ref.accountId, ref)
    const state = stateOf(standing, ref, clock.now())
    if (state !== 'asks') return { state, lifts: false }
    const key = addressKey(ref.address)
    const suppression = (await findSuppressed(on, ref.accountId, [key])).get(key)
    if (suppression === undefined) return { state, lifts: false }
    if (suppression.reason !== 'unsubscribe') return { state: 'suppressed', lifts: false }
    if (suppression.since > ref.askedAt) return { state: 'unsubscribed', lifts: false }
    return ref.mode === 'test' ? { state: 'test', lifts: false } : { state, lifts: true }
  }

  async function pageOf(on: Handle, ref: ConfirmationRef, state: ConfirmationState): Promise<ConfirmationPage | null> {
    const brand = await findBrand(on, ref.accountId)
    if (brand === null) return null
    const standing = await findStanding(on, ref.accountId, ref)
    return { brand, audienceName: standing?.audienceName ?? null, state }
  }

  /** Under the lock of the person, behind which nothing of this changes. */
  async function confirmNow(trx: Trx, ref: ConfirmationRef): Promise<ConfirmationState> {
    const { accountId, subscriberId, audienceId, mode } = ref
    const person = await lockPerson(trx, accountId, subscriberId)
    if (person === undefined) return 'gone'
    const { state, lifts } = await look(trx, ref)
    if (state !== 'asks') return state
    // They unsubscribed before they were asked, and ask for emails now.
    if (lifts) await removeUnsubscribe(trx, accountId, ref.address)
    const contact = { audienceId, status: 'active' as const }
    await changePerson(trx, { clock, outbox }, person, { patch: {}, contact, mode })
    return 'confirmed'
  }

  return {
    async show(token) {
      const ref = tokens.read(token)
      if (ref === null) return null
      const { state } = await look(handle, ref)
      return pageOf(handle, ref, state)
    },
    async confirm(token) {
      const ref = tokens.read(token)
      if (ref === null) return null
      if (!takeChange(`${ref.accountId} ${addressKey(ref.address)}`)) return 'too often'
      return inTransaction(handle, async (trx) => pageOf(trx, ref, await confirmNow(trx, ref)))
    },
  }
}

function stateOf(standing: ContactStanding | undefined, ref: ConfirmationRef, now: Date): ConfirmationState {
  if (standing === undefined || standing.emailKey !== addressKey(ref.address)) return 'gone'
  if (standing.personStatus === 'unsubscribed' || standing.status === 'unsubscribed') return 'unsubscribed'
  if (standing.status === 'active') return 'confirmed'
  if (now.getTime() - ref.askedAt.getTime() > confirmationLimits.linkMs) return 'expired'
  const isOfSimulator = ref.address.toLowerCase().endsWith(`@${simulatorDomain}`)
  return ref.mode === 'test' && !isOfSimulator ? 'test' : 'asks'
}
