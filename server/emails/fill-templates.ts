import { DomainError } from '../shared/errors.ts'
import type { TemplateUse } from '../templates/rendered-emails.ts'
import type { TemplateService } from '../templates/service.ts'
import type { ReadEmail } from './validate-email.ts'

/** Returns the emails with their rendered content in place of their templates, or why there is none, in order. */
export async function fillTemplates(
  items: readonly (ReadEmail | DomainError)[],
  pathOf: (index: number) => string,
  render: (uses: readonly TemplateUse[]) => ReturnType<TemplateService['render']>,
): Promise<(ReadEmail | DomainError)[]> {
  const results = [...items]
  const uses: (TemplateUse & { index: number })[] = []
  for (const [index, item] of results.entries()) {
    if (item instanceof DomainError || item.template === null) continue
    const { id, variables = {} } = item.template
    uses.push({ index, id, variables, path: `${pathOf(index)}.template` })
  }
  if (uses.length === 0) return results
  const rendered = await render(uses)
  for (const [position, { index }] of uses.entries()) {
    const content = rendered[position]
    const item = results[index]
    if (content === undefined || item === undefined || item instanceof DomainError) continue
    results[index] = content instanceof DomainError ? content : { ...item, ...content }
  }
  return results
}
