import type { Handle, Trx } from '../database/connection.ts'
import type { TemplateContent } from '../rendering/renderer.ts'
import { fallbacksIn } from './fallbacks.ts'
import { contentOf } from './message.ts'
import type { CampaignKey, CampaignRow } from './queries.ts'

/**
 * The message of a variant that has one of its own. That of a template is empty until the campaign is sent. `constants`:
 * see fallbacks.ts; null: those of the campaign.
 */
export type VariantContent = Pick<
  CampaignRow,
  'preheader' | 'html' | 'mjml' | 'text' | 'template_id' | 'template_version' | 'constants'
>

/** A message that is not that of a template. */
export const noTemplate = { template_id: null, template_version: null, constants: null } as const

/** The message of a variant with a template, before that is copied. */
export function contentOfTemplate(id: string): VariantContent {
  return { ...noTemplate, preheader: null, html: null, mjml: null, text: null, template_id: id }
}

/** A variant of a campaign. Null: as in the campaign. */
export type Variant = { name: string; subject: string | null; content: VariantContent | null }

type Tested = Pick<CampaignRow, 'account_id' | 'id' | 'ab_test'>

/** Returns the variants of a campaign in their order. Empty: it has no A/B test. */
export async function selectVariants(handle: Handle, { account_id, id, ab_test: test }: Tested): Promise<Variant[]> {
  if (test === null) return []
  const rows = await handle
    .selectFrom('campaign_variants')
    .select(['number', 'preheader', 'html', 'mjml', 'text', 'template_id', 'template_version', 'constants'])
    .where('account_id', '=', account_id)
    .where('campaign_id', '=', id)
    .execute()
  const contents = new Map(rows.map(({ number, ...content }) => [number, content]))
  return test.variants.map((variant, number) => ({ ...variant, content: contents.get(number) ?? null }))
}

/** Stores the messages of variants, in the place of those that there are. */
export async function replaceVariantContents(
  trx: Trx,
  { accountId: account_id, id: campaign_id }: CampaignKey,
  variants: readonly Variant[],
): Promise<void> {
  await trx
    .deleteFrom('campaign_variants')
    .where('account_id', '=', account_id)
    .where('campaign_id', '=', campaign_id)
    .execute()
  const rows = variants.flatMap(({ content }, number) => {
    if (content === null) return []
    const { constants, ...columns } = content
    return [{ account_id, campaign_id, number, ...columns, constants: constants && JSON.stringify(constants) }]
  })
  if (rows.length > 0) await trx.insertInto('campaign_variants').values(rows).execute()
}

/** The columns of a campaign that a variant may replace. */
type Replaced = TemplateContent & Pick<CampaignRow, 'mjml' | 'template_id' | 'has_own_subject'>

/** Returns a campaign as if a variant was its message. Undefined: as it is. */
export function asVariant<Row extends Replaced>(row: Row, variant: Variant | undefined): Row {
  const { subject = null, content = null } = variant ?? {}
  const { constants = null, ...message } = content ?? {}
  return {
    ...row,
    ...(content !== null && message),
    ...(constants !== null && { constants }),
    // The subject of its template is not used, but that of the campaign.
    ...(content !== null && content.template_id !== null && { has_own_subject: true }),
    ...(subject !== null && { subject, has_own_subject: true }),
  }
}

/** The content that is sent. `constants`: values for it, with the fallbacks of its template. */
export type SentContent = TemplateContent & Pick<CampaignRow, 'constants'>

/** The contents of a campaign that was sent: its own, and that of each variant. */
export type CampaignContents = { own: SentContent; variants: readonly SentContent[] }

/** Returns the contents of a campaign that was sent. */
export async function contentsOf(handle: Handle, row: CampaignRow): Promise<CampaignContents> {
  const sentOf = (one: CampaignRow) => ({ ...contentOf(one), constants: one.constants })
  const variants = await selectVariants(handle, row)
  return { own: sentOf(row), variants: variants.map((variant) => sentOf(asVariant(row, variant))) }
}

/** Returns the content with a number. Null: the campaign's own. */
export function contentWith({ own, variants }: CampaignContents, number: number | null): SentContent {
  return (number === null ? undefined : variants[number]) ?? own
}

/**
 * Returns the variants of a draft that is made of a campaign.
 *
 * @param isPublished Tells whether there is a published version of a template now.
 */
export function variantsOfDuplicate(
  row: Pick<CampaignRow, 'status' | 'variables'>,
  variants: readonly Variant[],
  isPublished: (templateId: string) => boolean,
): Variant[] {
  return variants.map(({ content, ...variant }) => {
    if (content === null) return { ...variant, content }
    const { template_id: id, template_version: version } = content
    if (id !== null && (version === null || isPublished(id))) return { ...variant, content: contentOfTemplate(id) }
    // The content that was copied from the template becomes that of the variant, with its fallbacks.
    return { ...variant, content: { ...content, ...noTemplate, constants: fallbacksIn(row, content.constants) } }
  })
}
