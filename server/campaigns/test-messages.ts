import { type Handle, inTransaction } from '../database/connection.ts'
import type { CampaignEmail, EmailService } from '../emails/service.ts'
import type { EmailFault } from '../emails/validate-email.ts'
import type { MessagePageRef, UnsubscribeRef } from '../message/mail-tokens.ts'
import { hasMailboxForm, readMailbox } from '../message/mailbox.ts'
import { brokenRule, brokenRules, DomainError, invalidRequest } from '../shared/errors.ts'
import { newId } from '../shared/ids.ts'
import type { Scope } from '../shared/scope.ts'
import { findProperties, valuesInMessages } from '../subscribers/properties.ts'
import type { AccountRenderer } from '../templates/renderer-turns.ts'
import { type Addressee, contentOf, emailTo, variablesOf } from './message.ts'
import { type CampaignRow, findAccountName, findPerson } from './queries.ts'

type Means = {
  handle: Handle
  emails: Pick<EmailService, 'sendOfAccount'>
  renderer: AccountRenderer
  unsubscribeUrl: (ref: UnsubscribeRef) => string
  webUrl: (ref: MessagePageRef) => string
  now: Date
}

/** Reads the addresses of a request. Throws `validation_error` or `rule_violation` when one is not valid. */
export function addresseesOf(to: readonly string[]): Addressee[] {
  return to.map(addresseeOf)
}

type Test = {
  row: CampaignRow
  to: readonly Addressee[]
  /**
   * The subscriber whose values stand in the message. Undefined: the name and address of the recipient, and the fallbacks
   * of properties.
   */
  as: string | undefined
}

/**
 * Sends a campaign to test addresses, one email for each, and returns their ids. Throws `rule_violation` when the
 * subscriber does not exist, when the content cannot be rendered, and when an address is suppressed or has unsubscribed.
 */
export async function sendTests(means: Means, scope: Scope, test: Test): Promise<string[]> {
  // Before the transaction: rendering may take long, and a connection that waits for it is one less for all others.
  const made = await makeTests(means, test)
  return inTransaction(means.handle, async (trx) => {
    const results = await means.emails.sendOfAccount(trx, scope, made, { lane: 'single' })
    for (const [index, result] of results.entries()) {
      if (result instanceof DomainError) throw result
      if ('withheld' in result) {
        const why =
          result.withheld === 'suppressed'
            ? 'is on the suppression list'
            : 'unsubscribed from the audience or the topic'
        throw brokenRule(`body.to[${index}]`, why)
      }
    }
    return made.map((one) => one.id)
  })
}

/** Renders a campaign for test addresses, one email for each. */
async function makeTests(
  { handle, renderer, unsubscribeUrl, webUrl, now }: Means,
  { row, to: addressees, as }: Test,
): Promise<CampaignEmail[]> {
  const { account_id: accountId } = row
  const declared = await findProperties(handle, accountId)
  const shown = as === undefined ? null : await findPerson(handle, accountId, as)
  if (shown === undefined) throw brokenRule('body.subscriberId', 'must be a subscriber of the account')
  const accountName = await findAccountName(handle, accountId)
  const tests = addressees.map((addressee) => {
    const emailId = newId('email', now)
    const { email: address, firstName } = addressee
    const { id, email, first_name, last_name, properties } = shown ?? {
      id: null,
      email: address,
      first_name: firstName,
      last_name: null,
      properties: {},
    }
    const person = {
      id,
      email,
      firstName: first_name,
      lastName: last_name,
      properties: valuesInMessages(properties, declared),
    }
    // The link unsubscribes the test address, not the subscriber whose values are shown.
    const link = unsubscribeUrl({ emailId, position: 0, accountId, address, topicId: row.topic_id ?? undefined })
    const links = { unsubscribeUrl: link, webUrl: webUrl({ accountId, emailId }) }
    return { emailId, addressee, variables: variablesOf(person, { campaign: row, accountName, ...links }) }
  })
  const renderings = await renderer.render(
    contentOf(row),
    tests.map(({ variables }) => variables),
  )
  return Promise.all(
    tests.map(async ({ emailId, addressee }, index) => {
      const rendering = renderings[index]
      if (rendering?.status !== 'rendered') {
        throw brokenRule('campaign.content', rendering?.reason ?? 'It was not rendered.')
      }
      const email = await emailTo(addressee, row, { rendered: rendering.rendered, now })
      if (typeof email === 'string') throw brokenRule('campaign.content', email)
      return { id: emailId, campaignId: null, email }
    }),
  )
}

/** Reads an address of a request. */
function addresseeOf(text: string, index: number): Addressee {
  const { mailbox, fault } = readMailbox(text)
  if (mailbox !== null) return { email: mailbox.address, firstName: mailbox.name, lastName: null }
  throw refusalOf([{ path: `body.to[${index}]`, message: fault, isOfForm: !hasMailboxForm(text) }])
}

/** Returns the error for what is wrong with a campaign or an address. */
export function refusalOf(faults: readonly EmailFault[]): DomainError {
  return faults.some(({ isOfForm }) => isOfForm) ? invalidRequest(faults) : brokenRules(faults)
}
