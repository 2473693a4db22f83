import type { Brand } from '../../contract/brand.ts'
import type { AskingAudience, ConfirmationMailer } from '../audiences/confirmation.ts'
import type { Handle } from '../database/connection.ts'
import type { EmailService } from '../emails/service.ts'
import { readEmail } from '../emails/validate-email.ts'
import type { Clock } from '../lib/clock.ts'
import { mapYielding } from '../lib/yielding.ts'
import { addressKey } from '../message/address.ts'
import type { ConfirmationRef } from '../message/confirmation-tokens.ts'
import { brokenRules, DomainError, type ErrorDetail, invalidRequest } from '../shared/errors.ts'
import { newId } from '../shared/ids.ts'
import type { Scope } from '../shared/scope.ts'
import { confirmationText } from './texts.ts'

export type ConfirmationMailerOptions = {
  clock: Clock
  emails: Pick<EmailService, 'judgeCampaign' | 'sendOfAccount'>
  /** Returns the addresses that are on the suppression list. Addresses are given as `addressKey` makes them. */
  findSuppressed: (
    handle: Handle,
    accountId: string,
    addressKeys: readonly string[],
  ) => Promise<ReadonlyMap<string, unknown>>
  /** Returns the brand of an account, null when it is gone. */
  findBrand: (handle: Handle, accountId: string) => Promise<Brand | null>
  /** Returns the link to confirm. */
  confirmUrl: (ref: ConfirmationRef) => string
  /** The reason, for people, why links in emails would not work. Null: they lead to this service. */
  faultOfLinks: string | null
}

/** The tag of emails that ask to confirm, by which statistics tell them apart. */
const tag = 'double-opt-in'

const noBrand: Brand = { name: null, accentColor: null, text: null }

/** Writes emails that ask to confirm: ordinary emails of the account, to one person each. */
export function createConfirmationMailer(options: ConfirmationMailerOptions): ConfirmationMailer {
  const { clock, emails, findSuppressed, findBrand, confirmUrl, faultOfLinks } = options

  type Words = { audience: AskingAudience; brand: Brand; link: string; to: string }

  function emailOf({ audience, brand, link, to }: Words) {
    const { from, subject, text } = audience.doubleOptIn
    const words = confirmationText({ brand, audienceName: audience.name, subject, text, link })
    // So that no vacation message comes back. Source: RFC 3834 §5.
    const headers = { 'Auto-Submitted': 'auto-generated' }
    const metadata = { audienceId: audience.id }
    return readEmail({ from, to, ...words, headers, tags: [tag], metadata }, { now: clock.now(), path: 'email' })
  }

  function refusalOfLinks(scope: Scope): DomainError | null {
    if (scope.mode === 'test' || faultOfLinks === null) return null
    const message = `The link to confirm would lead nowhere: ${faultOfLinks}. Ask the operator of the service to set PUBLIC_URL to its https address.`
    return new DomainError('public_url_needed', message)
  }

  return {
    async judge(handle, scope, doubleOptIn) {
      const audience = { id: '', name: 'Newsletter', doubleOptIn }
      const { email, faults } = await emailOf({
        audience,
        brand: noBrand,
        link: 'https://example.com',
        to: 'ada@example.com',
      })
      if (faults !== null) {
        const details = faults.map(({ path, message }): ErrorDetail => ({ path: pathOf(path), message }))
        return faults.some(({ isOfForm }) => isOfForm) ? invalidRequest(details) : brokenRules(details)
      }
      const refusal = await emails.judgeCampaign(handle, scope, email)
      if (refusal === null) return refusalOfLinks(scope)
      const details = refusal.details.map(({ path, message }) => ({ path: pathOf(path), message }))
      return new DomainError(refusal.code, refusal.message, { details })
    },

    async ask(trx, scope, { audience, people, isBulk }) {
      const refusal = refusalOfLinks(scope)
      if (refusal !== null) throw refusal
      const { accountId, mode } = scope
      const brand = (await findBrand(trx, accountId)) ?? noBrand
      const askedAt = clock.now()
      const keys = people.map(({ email }) => addressKey(email))
      // Who is added singly asks for it now, also after leaving. A list may be older than that.
      const left = isBulk ? await findSuppressed(trx, accountId, keys) : new Map()
      const written = await mapYielding(
        people.filter((_, index) => !left.has(keys[index] ?? '')),
        async ({ id: subscriberId, email: address }) => {
          const ref = { accountId, audienceId: audience.id, subscriberId, address, mode, askedAt }
          const { email } = await emailOf({ audience, brand, link: confirmUrl(ref), to: address })
          return { subscriberId, email }
        },
      )
      // No email can be written to some addresses of subscribers: their domains are no names of the DNS.
      const letters = written.flatMap(({ subscriberId, email }) => (email === null ? [] : [{ subscriberId, email }]))
      const sent = letters.map(({ email }) => ({ id: newId('email', askedAt), campaignId: null, email }))
      const results = await emails.sendOfAccount(trx, scope, sent, { lane: isBulk ? 'bulk' : 'single' })
      const asked = new Set<string>()
      for (const [index, { subscriberId }] of letters.entries()) {
        const result = results[index]
        if (result instanceof DomainError) throw result
        if (result !== undefined && 'content' in result) asked.add(subscriberId)
      }
      return asked
    },
  }
}

/** All faults are of the settings: the rest is written here. */
function pathOf(path: string): string {
  return `body.doubleOptIn.${path.slice(path.indexOf('.') + 1)}`
}
