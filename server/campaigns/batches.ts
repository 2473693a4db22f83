import type { CampaignEmail } from '../emails/service.ts'
import { newId } from '../shared/ids.ts'
import { findProperties, valuesInMessages } from '../subscribers/properties.ts'
import type { ClaimedCampaign, WaitingRecipient } from './engine-queries.ts'
import { contentOf, emailTo, variablesOf } from './message.ts'
import type { CampaignRow } from './queries.ts'
import type { EngineMeans } from './turns.ts'
import { type CampaignContents, contentWith } from './variants.ts'

/** The outcome of making the message to a recipient. */
export type Made = { email: CampaignEmail } | { failed: string } | { skipped: 'left' | 'unsubscribed' }

/**
 * The messages of a turn, by subscriber. `people` are in the order of the queue, and end before the first one whose
 * message was not rendered yet.
 */
export type Batch = { people: readonly WaitingRecipient[]; made: ReadonlyMap<string, Made> }

/**
 * A turn renders for so long, and to the end of the message that is at work then: campaigns get their turns one after the
 * other, so that one whose content is slow to render must not hold up those of others. Milliseconds.
 */
const renderingMs = 1_000
/** Maximum characters rendered in a turn. The last message may exceed it: small content can make large messages. */
const renderedLength = 8 * 2 ** 20
/** People whose values are put together for one request to the renderer. */
const asked = 100

/**
 * Makes the messages to the first of `recipients`: to as many as there is time and room for, and to one at least. For
 * the others nothing is tried: they come with a next turn. Changes nothing.
 */
export async function makeBatch(
  means: EngineMeans,
  about: { claimed: ClaimedCampaign; row: CampaignRow; contents: CampaignContents },
  recipients: readonly WaitingRecipient[],
): Promise<Batch> {
  const deadline = performance.now() + renderingMs
  const declared = await findProperties(means.db, about.row.account_id)
  const made = new Map<string, Made>()
  const isMade = (one: WaitingRecipient | undefined) => one !== undefined && made.has(one.subscriber_id)
  let done = 0
  let outputLength = renderedLength
  while (done < recipients.length && outputLength > 0 && (done === 0 || performance.now() < deadline)) {
    const some = recipients.slice(done, done + asked).filter((one) => !isMade(one))
    for (const [id, one] of await makeSome(means, about, { recipients: some, declared, outputLength, deadline })) {
      made.set(id, one)
      outputLength -= lengthOf(one)
    }
    while (isMade(recipients[done])) done++
  }
  return { people: recipients.slice(0, done), made }
}

/** The length of what was rendered. UTF-16 code units. */
function lengthOf(made: Made): number {
  if (!('email' in made)) return 0
  const { html, text } = made.email.email
  return (html?.length ?? 0) + (text?.length ?? 0)
}

type Some = {
  recipients: readonly WaitingRecipient[]
  /** The properties of the account. */
  declared: Awaited<ReturnType<typeof findProperties>>
  /** UTF-16 code units. */
  outputLength: number
  /** As `performance.now()`. */
  deadline: number
}

/**
 * Renders the messages to those who are still in the audience, of each variant as many as a request to the renderer and
 * `outputLength` allow, until `deadline`. Variants share what is left of both: who comes behind somebody without a message
 * comes in the next turn. The first recipient has one, or the reason why not. Changes nothing.
 */
async function makeSome(
  { clock, renderer, unsubscribeUrl, webUrl }: EngineMeans,
  { claimed, row, contents }: { claimed: ClaimedCampaign; row: CampaignRow; contents: CampaignContents },
  { recipients, declared, outputLength, deadline }: Some,
): Promise<ReadonlyMap<string, Made>> {
  const now = clock.now()
  const made = new Map<string, Made>()
  const written = recipients.flatMap((recipient) => {
    const { subscriber_id: id, email, contact_status: ofContact, person_status: ofPerson } = recipient
    if (email === null || ofContact === null) made.set(id, { skipped: 'left' })
    else if (ofContact !== 'active' || ofPerson === 'unsubscribed') made.set(id, { skipped: 'unsubscribed' })
    else {
      const { first_name: firstName, last_name: lastName } = recipient
      const properties = valuesInMessages(recipient.properties ?? {}, declared)
      const person = { id, email, firstName, lastName, properties }
      return [{ id, person, variant: recipient.variant, emailId: newId('email', now) }]
    }
    return []
  })
  const byVariant = [...Map.groupBy(written, ({ variant }) => variant ?? row.ab_winner)]
  let lengthLeft = outputLength
  for (const [index, [number, some]] of byVariant.entries()) {
    const share = byVariant.length - index
    const limits = { timeMs: (deadline - performance.now()) / share, outputLength: lengthLeft / share }
    if (index > 0 && (limits.timeMs <= 0 || limits.outputLength <= 0)) break
    const content = contentWith(contents, number)
    const campaign = { ...row, constants: content.constants }
    const renderings = await renderer.renderFirst(
      contentOf(content),
      some.map(({ person, emailId }) =>
        variablesOf(person, {
          campaign,
          accountName: claimed.account_name,
          unsubscribeUrl: unsubscribeUrl({
            emailId,
            position: 0,
            accountId: row.account_id,
            address: person.email,
            topicId: row.topic_id ?? undefined,
          }),
          webUrl: webUrl({ accountId: row.account_id, emailId }),
        }),
      ),
      limits,
    )
    for (const [place, { id, person, variant, emailId }] of some.entries()) {
      const rendering = renderings[place]
      if (rendering === undefined) break
      if (rendering.status === 'failed') {
        made.set(id, { failed: rendering.reason })
        continue
      }
      const email = await emailTo(person, row, { rendered: rendering.rendered, now })
      const one: Made =
        typeof email === 'string' ? { failed: email } : { email: { id: emailId, campaignId: row.id, variant, email } }
      made.set(id, one)
      lengthLeft -= lengthOf(one)
    }
  }
  return made
}
