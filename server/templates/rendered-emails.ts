import type { Handle } from '../database/connection.ts'
import type { Rendered } from '../rendering/renderer.ts'
import { brokenRules, DomainError } from '../shared/errors.ts'
import { selectPublished, type VersionRow } from './queries.ts'
import type { AccountRenderer } from './renderer-turns.ts'
import { readValues } from './variables.ts'

/** An email that is made of a template. */
export type TemplateUse = {
  id: string
  variables: Readonly<Record<string, unknown>>
  /** Where the template is named in the request, such as `body.template`. */
  path: string
}

/**
 * Renders the published versions of templates, each once for all of its uses. Returns the content of each email or the
 * reason why it has none, in order: `template_not_found`, `rule_violation` for variables, or `template_fault`.
 */
export async function renderUses(
  renderer: AccountRenderer,
  { handle, accountId }: { handle: Handle; accountId: string },
  uses: readonly TemplateUse[],
): Promise<(Rendered | DomainError)[]> {
  const versions = await selectPublished(handle, accountId, [...new Set(uses.map(({ id }) => id))])
  const byId = Map.groupBy(uses.entries(), ([, { id }]) => id)
  const results: (Rendered | DomainError)[] = uses.map(notPublished)
  await Promise.all(
    versions.map(async (version) => {
      const asked = (byId.get(version.template_id) ?? []).map(([index, use]) => ({ index, use }))
      for (const { index, result } of await renderVersion(renderer, version, asked)) results[index] = result
    }),
  )
  return results
}

type Asked = { index: number; use: TemplateUse }

async function renderVersion(
  renderer: AccountRenderer,
  version: VersionRow,
  asked: readonly Asked[],
): Promise<{ index: number; result: Rendered | DomainError }[]> {
  const { subject, preheader, html, text } = version
  const read = asked.map(({ index, use }) => ({
    index,
    use,
    ...readValues(version.variables, use.variables, `${use.path}.variables`),
  }))
  const valid = read.filter(({ faults }) => faults.length === 0)
  const renderings = await renderer.render(
    { subject, preheader, html, text },
    valid.map(({ values }) => values),
  )
  return [
    ...read
      .filter(({ faults }) => faults.length > 0)
      .map(({ index, faults }) => ({ index, result: brokenRules(faults) })),
    ...valid.map(({ index, use }, position) => {
      const rendering = renderings[position]
      const result = rendering?.status === 'rendered' ? rendering.rendered : faultOf(use, rendering?.reason ?? '')
      return { index, result }
    }),
  ]
}

function notPublished({ id, path }: TemplateUse): DomainError {
  const message = `The account has no published template with the id "${id}": publish it first.`
  return new DomainError('template_not_found', message, {
    details: [{ path: `${path}.id`, message: 'is not published' }],
  })
}

function faultOf({ id, path }: TemplateUse, reason: string): DomainError {
  return new DomainError('template_fault', `The template "${id}" cannot be rendered: ${reason}`, {
    details: [{ path, message: reason }],
  })
}
