import type { SendEmail } from '../../contract/emails.ts'
import type { Handle } from '../database/connection.ts'
import type { Rendered } from '../rendering/renderer.ts'
import { brokenRules, DomainError } from '../shared/errors.ts'

/** A template of an email, with where it stands in the request. */
type TemplateUse = { id: string; variables: Readonly<Record<string, unknown>>; path: string }

type RenderUses = (uses: readonly TemplateUse[]) => Promise<(Rendered | DomainError)[]>

/** Renders published templates of an account, in order. */
export type RenderTemplates = (
  handle: Handle,
  accountId: string,
  ...rest: Parameters<RenderUses>
) => ReturnType<RenderUses>

/** Returns the emails with their rendered content in place of their templates, or why there is none, in order. */
export async function fillTemplates(
  items: readonly (SendEmail | DomainError)[],
  pathOf: (index: number) => string,
  render: RenderUses,
): Promise<(SendEmail | DomainError)[]> {
  const results = items.map((item, index) => refusalOf(item, pathOf(index)) ?? item)
  const uses: (TemplateUse & { index: number })[] = []
  for (const [index, item] of results.entries()) {
    if (item instanceof DomainError || item.template === undefined) continue
    const { id, variables = {} } = item.template
    uses.push({ index, id, variables, path: `${pathOf(index)}.template` })
  }
  const rendered = await render(uses)
  for (const [position, { index }] of uses.entries()) {
    const content = rendered[position]
    const item = results[index]
    if (content === undefined || item === undefined || item instanceof DomainError) continue
    const { template: _, ...email } = item
    results[index] = content instanceof DomainError ? content : { ...email, ...content }
  }
  return results
}

/** Refuses an email with a template and content of its own. */
function refusalOf(item: SendEmail | DomainError, path: string): DomainError | null {
  if (item instanceof DomainError || item.template === undefined) return null
  const own = (['subject', 'html', 'text'] as const).filter((field) => (item[field] ?? null) !== null)
  if (own.length === 0) return null
  return brokenRules(own.map((field) => ({ path: `${path}.${field}`, message: 'must not be given beside template' })))
}
