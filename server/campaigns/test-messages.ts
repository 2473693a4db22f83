import type { CampaignEmail } from '../emails/service.ts'
import type { EmailFault } from '../emails/validate-email.ts'
import type { UnsubscribeRef } from '../message/mail-tokens.ts'
import type { Renderer } from '../rendering/renderer.ts'
import { brokenRule, brokenRules, type DomainError, invalidRequest } from '../shared/errors.ts'
import { newId } from '../shared/ids.ts'
import { contentOf, emailTo, readCampaign, variablesOf } from './message.ts'
import type { CampaignRow } from './queries.ts'

type Means = { renderer: Renderer; unsubscribeUrl: (ref: UnsubscribeRef) => string; now: Date }

/**
 * Renders a campaign for addresses, an email each. Throws `validation_error` and `rule_violation` for addresses that are
 * none, and for content that fails.
 */
export async function makeTests(
  { renderer, unsubscribeUrl, now }: Means,
  row: CampaignRow,
  to: readonly string[],
): Promise<CampaignEmail[]> {
  const tests = to.map((text) => ({ text, emailId: newId('email', now) }))
  const reads = await Promise.all(tests.map(({ text }) => readCampaign(row, { now, path: 'body', to: text })))
  const people = reads.map((read, index) => {
    const mailbox = read.email?.recipients[0]
    if (mailbox === undefined) {
      const faults = (read.faults ?? []).map((fault) => ({ ...fault, path: `body.to[${index}]` }))
      throw refusalOf(faults)
    }
    return { id: null, email: mailbox.address, firstName: mailbox.name, lastName: null }
  })
  const renderings = await renderer.render(
    contentOf(row),
    people.map((person, index) =>
      variablesOf(person, {
        campaign: row,
        accountName: '',
        unsubscribeUrl: unsubscribeUrl({
          emailId: tests[index]?.emailId ?? '',
          position: 0,
          accountId: row.account_id,
          address: person.email,
        }),
      }),
    ),
  )
  return Promise.all(
    people.map(async (person, index) => {
      const rendering = renderings[index]
      if (rendering?.status !== 'rendered') {
        throw brokenRule('campaign.content', rendering?.reason ?? 'It was not rendered.')
      }
      const email = await emailTo(person, row, { rendered: rendering.rendered, now })
      if (typeof email === 'string') throw brokenRule('campaign.content', email)
      return { id: tests[index]?.emailId ?? '', campaignId: null, email }
    }),
  )
}

/** Returns the error for what is wrong with a campaign or an address. */
export function refusalOf(faults: readonly EmailFault[]): DomainError {
  return faults.some(({ isOfForm }) => isOfForm) ? invalidRequest(faults) : brokenRules(faults)
}
