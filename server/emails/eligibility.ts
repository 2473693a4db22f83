import type { SuppressionReason } from '../../contract/suppressions.ts'
import type { unsubscribedFrom } from '../audiences/unsubscribed.ts'
import type { Handle } from '../database/connection.ts'
import { withheldFor } from '../email-delivery/recipient-eligibility.ts'
import { DomainError } from '../shared/errors.ts'
import type { Scope } from '../shared/scope.ts'
import type { NewRecipient, ReadEmail } from './validate-email.ts'

/** The account and mode that an email is sent for. */
export type SendingScope = Scope

type SendingDomain = { id: string; name: string; status: 'pending' | 'verified' | 'failed' }
type Suppressed = { reason: SuppressionReason; since: Date }

export type EligibilityMeans = {
  /** True when email is captured instead of sent. Names below `.test` are then verified without DNS queries. */
  isCaptured: boolean
  /** The reason, for people, why links in emails would not work. Null: they lead to this service. */
  faultOfLinks: string | null
  /** Returns the domain of the account that covers a name, or null. */
  findSendingDomain: (handle: Handle, accountId: string, domainName: string) => Promise<SendingDomain | null>
  /** Returns the addresses that are on the suppression list. Addresses are given as `addressKey` makes them. */
  findSuppressed: (
    handle: Handle,
    accountId: string,
    addressKeys: readonly string[],
  ) => Promise<Map<string, Suppressed>>
  /** Returns the addresses whose owners have unsubscribed from an audience, or null when there is no such audience. */
  findUnsubscribed: typeof unsubscribedFrom
  /** Returns the addresses whose owners do not get a topic, or null when there is no such topic. */
  findWithoutTopic: (
    handle: Handle,
    accountId: string,
    topic: { id: string; addressKeys: readonly string[] },
  ) => Promise<Set<string> | null>
}

/** Decides which emails may be sent and to whom, from the state of the account at one moment. */
export type Eligibility = {
  /** Returns the reason why an email cannot be sent, or null. `path`: where it is in the request. */
  refusalOf(email: ReadEmail, path: string): DomainError | null
  /** Returns the id of the verified domain of an email, or null for a test key, which sends nothing. */
  domainIdOf(email: ReadEmail): string | null
  /** Returns why nothing is sent to a recipient, or null. */
  withheldFrom(recipient: NewRecipient, email: ReadEmail): 'suppressed' | 'unsubscribed' | null
  /** The same as a sentence for people. */
  reasonAgainst(recipient: NewRecipient, email: ReadEmail): string | null
}

/** Reads the domains, suppressions, unsubscriptions and topics that concern `emails`, with concurrent queries. */
export async function createEligibility(
  handle: Handle,
  means: EligibilityMeans,
  { sender, emails }: { sender: SendingScope; emails: readonly ReadEmail[] },
): Promise<Eligibility> {
  const { accountId, mode } = sender
  const isLive = mode === 'live'
  const domainNames = isLive ? unique(emails.map(({ from }) => from.domain)) : []
  const written = isLive ? emails : []
  const keys = unique(written.flatMap((email) => keysOf(email)))
  const audiences = Map.groupBy(emails, ({ audienceId }) => audienceId)
  audiences.delete(null)
  const topics = Map.groupBy(emails, ({ topicId }) => topicId)
  topics.delete(null)
  const [domains, suppressed, unsubscribed, withoutTopic] = await Promise.all([
    readAll(domainNames, (name) => means.findSendingDomain(handle, accountId, name)),
    means.findSuppressed(handle, accountId, keys),
    readAll([...audiences.keys()], (id) =>
      means.findUnsubscribed(handle, accountId, {
        id: id ?? '',
        addressKeys: isLive ? unique((audiences.get(id) ?? []).flatMap(keysOf)) : [],
      }),
    ),
    readAll([...topics.keys()], (id) =>
      means.findWithoutTopic(handle, accountId, {
        id: id ?? '',
        addressKeys: isLive ? unique((topics.get(id) ?? []).flatMap(keysOf)) : [],
      }),
    ),
  ])

  const hasLeftAudience = (key: string, { audienceId }: ReadEmail) =>
    audienceId !== null && unsubscribed.get(audienceId)?.has(key) === true

  const withheldFrom: Eligibility['withheldFrom'] = ({ key, domain }, email) => {
    const { audienceId, topicId } = email
    const reason = suppressed.get(key)?.reason ?? null
    return withheldFor({
      domain,
      audienceId,
      suppressed: reason,
      unsubscribed: hasLeftAudience(key, email),
      withoutTopic: topicId !== null && withoutTopic.get(topicId)?.has(key) === true,
    })
  }

  return {
    refusalOf(email, path) {
      const { from, audienceId, topicId } = email
      if (audienceId !== null && (unsubscribed.get(audienceId) ?? null) === null) {
        const details = [{ path: `${path}.audienceId`, message: 'must be an audience of the account' }]
        const message = `There is no audience with the id "${audienceId}" in this account.`
        return new DomainError('audience_not_found', message, { details })
      }
      if (topicId !== null && (withoutTopic.get(topicId) ?? null) === null) {
        const details = [{ path: `${path}.topicId`, message: 'must be a topic of the account' }]
        const message = `There is no topic with the id "${topicId}" in this account.`
        return new DomainError('topic_not_found', message, { details })
      }
      const linked = isLive && means.faultOfLinks !== null ? fieldWithLinks(email) : null
      if (linked !== null) return noLinks(`${path}.${linked}`, means.faultOfLinks)
      const domain = domains.get(from.domain) ?? null
      if (!isLive || domain?.status === 'verified') return null
      const details = [{ path: `${path}.from`, message: 'must be at a verified sending domain of the account' }]
      const message = domain === null ? notThere(from.domain, means) : notVerified(domain)
      return new DomainError('domain_not_verified', message, { details })
    },
    domainIdOf: ({ from }) => domains.get(from.domain)?.id ?? null,
    withheldFrom,
    reasonAgainst(recipient, email) {
      switch (withheldFrom(recipient, email)) {
        case 'suppressed':
          return suppressedReason(recipient.address, suppressed.get(recipient.key))
        case 'unsubscribed':
          return hasLeftAudience(recipient.key, email)
            ? 'The person unsubscribed from the audience or from everything, or has not confirmed yet, so no email to the audience is sent to them.'
            : 'The person does not get the topic of the email, so it is not sent to them.'
        case null:
          return null
      }
    },
  }
}

function suppressedReason(address: string, entry: Suppressed | undefined): string {
  const day = entry?.since.toISOString().slice(0, 10)
  return `The address has been on the suppression list since ${day} (${entry?.reason}), so nothing is sent to it. DELETE /v1/suppressions/${encodeURIComponent(address)} takes it off.`
}

/** Returns the field that adds links to this service to an email, or null. */
function fieldWithLinks({ audienceId, trackOpens, trackClicks }: ReadEmail): string | null {
  if (audienceId !== null) return 'audienceId'
  if (trackOpens) return 'trackOpens'
  return trackClicks ? 'trackClicks' : null
}

function noLinks(path: string, fault: string | null): DomainError {
  const message = `Links in this email would lead nowhere: ${fault}. Ask the operator of the service to set PUBLIC_URL to its https address; or send without tracking and without "audienceId".`
  return new DomainError('public_url_needed', message, {
    details: [{ path, message: 'needs links to this service, which has no public https address' }],
  })
}

function keysOf({ recipients }: ReadEmail): string[] {
  return recipients.map(({ key }) => key)
}

async function readAll<Key, Value>(keys: readonly Key[], read: (key: Key) => Promise<Value>): Promise<Map<Key, Value>> {
  return new Map(await Promise.all(keys.map(async (key) => [key, await read(key)] as const)))
}

function unique<T>(values: readonly T[]): T[] {
  return [...new Set(values)]
}

function notThere(name: string, { isCaptured }: EligibilityMeans): string {
  const way = isCaptured
    ? 'Add it with POST /v1/domains and publish its DNS records, or add a name that ends in .test: while email is captured, that is verified at once.'
    : 'Add it with POST /v1/domains and publish its DNS records; then send again.'
  return `"${name}" is not a sending domain of this account. ${way} A test key needs none.`
}

function notVerified({ id, name, status }: SendingDomain): string {
  return `The sending domain "${name}" is not verified (${status}). GET /v1/domains/${id} shows the DNS records to publish, and POST /v1/domains/${id}/verify has them checked now.`
}
