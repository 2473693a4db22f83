import type { Handle, Trx } from '../database/connection.ts'
import type { TemplateContent } from '../rendering/renderer.ts'
import { contentOf } from './message.ts'
import type { CampaignKey, CampaignRow } from './queries.ts'

/** The message of a variant that has one of its own. */
export type VariantContent = Pick<CampaignRow, 'preheader' | 'html' | 'mjml' | 'text'>

/** A variant of a campaign. Null: as in the campaign. */
export type Variant = { name: string; subject: string | null; content: VariantContent | null }

type Tested = Pick<CampaignRow, 'account_id' | 'id' | 'ab_test'>

/** Returns the variants of a campaign in their order. Empty: it has no A/B test. */
export async function selectVariants(handle: Handle, { account_id, id, ab_test: test }: Tested): Promise<Variant[]> {
  if (test === null) return []
  const rows = await handle
    .selectFrom('campaign_variants')
    .select(['number', 'preheader', 'html', 'mjml', 'text'])
    .where('account_id', '=', account_id)
    .where('campaign_id', '=', id)
    .execute()
  const contents = new Map(rows.map(({ number, ...content }) => [number, content]))
  return test.variants.map((variant, number) => ({ ...variant, content: contents.get(number) ?? null }))
}

/** Stores the messages of variants, in the place of those that there are. Null: the variant has none of its own. */
export async function replaceVariantContents(
  trx: Trx,
  { accountId: account_id, id: campaign_id }: CampaignKey,
  contents: readonly (VariantContent | null)[],
): Promise<void> {
  await trx
    .deleteFrom('campaign_variants')
    .where('account_id', '=', account_id)
    .where('campaign_id', '=', campaign_id)
    .execute()
  const rows = contents.flatMap((content, number) =>
    content === null ? [] : [{ account_id, campaign_id, number, ...content }],
  )
  if (rows.length > 0) await trx.insertInto('campaign_variants').values(rows).execute()
}

/** What a variant may have of its own, in a campaign. */
type Replaced = TemplateContent & Pick<CampaignRow, 'mjml' | 'template_id' | 'has_own_subject'>

/** Returns a campaign as if a variant was its message. Undefined: as it is. */
export function asVariant<Row extends Replaced>(row: Row, variant: Variant | undefined): Row {
  const { subject = null, content = null } = variant ?? {}
  return {
    ...row,
    ...(subject !== null && { subject, has_own_subject: true }),
    ...(content !== null && { ...content, template_id: null }),
  }
}

/** What a campaign that was sent is made of: its own content, and that of each variant. */
export type CampaignContents = { own: TemplateContent; variants: readonly TemplateContent[] }

/** Returns the contents of a campaign that was sent. */
export async function contentsOf(handle: Handle, row: CampaignRow): Promise<CampaignContents> {
  const variants = await selectVariants(handle, row)
  return { own: contentOf(row), variants: variants.map((variant) => contentOf(asVariant(row, variant))) }
}

/** Returns the content with a number. Null: the campaign's own. */
export function contentWith({ own, variants }: CampaignContents, number: number | null): TemplateContent {
  return (number === null ? undefined : variants[number]) ?? own
}
