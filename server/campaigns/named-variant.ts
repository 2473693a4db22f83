import { pathOf } from './ab-test.ts'
import { numberOfVariant } from './choose-winner.ts'
import type { CampaignRow } from './queries.ts'
import { asVariant, type Variant } from './variants.ts'

/**
 * A campaign as if a variant was its message. `templatePath`: where its template stands in a campaign's request.
 * `inherited`: the campaign, of a draft where content of the variant itself gets the values of its template.
 */
export type ShownCampaign = { row: CampaignRow; templatePath: string; inherited?: CampaignRow }

/** Returns a campaign as a variant of it. Undefined: as it is. Throws `rule_violation` for an unknown variant. */
export function withVariant(
  row: CampaignRow,
  { name, variants }: { name: string | undefined; variants: readonly Variant[] },
): ShownCampaign {
  const own = 'body.templateId'
  if (name === undefined) return { row, templatePath: own }
  const number = numberOfVariant(row, name)
  const variant = variants[number]
  const content = variant?.content ?? null
  const hasTemplate = content !== null && content.template_id !== null
  const isInDraft = row.status === 'draft' && row.template_id !== null
  const inherits = isInDraft && content !== null && !hasTemplate && content.constants === null
  return {
    row: asVariant(row, variant),
    templatePath: hasTemplate ? `body.${pathOf(number)}.templateId` : own,
    ...(inherits && { inherited: row }),
  }
}
