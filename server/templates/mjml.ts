import type { MjmlFault } from '../rendering/mjml-source.ts'
import { brokenRule, type ErrorDetail } from '../shared/errors.ts'
import type { AccountRenderer } from './renderer-turns.ts'

/** HTML as it is written, or MJML and the HTML that it compiles to. `html` is null while the MJML has faults. */
export type Markup = { html: string | null; mjml: string | null }

/** The markup in a request. Undefined leaves a field as it is. */
export type GivenMarkup = { html?: string | null | undefined; mjml?: string | null | undefined }

/** Why a request that has both is refused. */
export const notBesideHtml = 'must not be given beside html'

/** Whether a request has HTML and MJML, which take each other's place. */
export function hasBothMarkups({ html, mjml }: GivenMarkup): boolean {
  return typeof html === 'string' && typeof mjml === 'string'
}

/**
 * Returns the markup after a request: HTML takes the place of MJML, and MJML that of HTML. Without MJML, what it was
 * compiled to stays as HTML.
 *
 * Throws `rule_violation` where both are given.
 *
 * @param options.before Null: there was none.
 * @param options.path Where the fields stand in the request, such as `body`.
 */
export async function markupOf(
  renderer: AccountRenderer,
  given: GivenMarkup,
  { path }: { path: string },
): Promise<(before: Markup) => Markup> {
  const { html, mjml } = given
  if (typeof mjml !== 'string') {
    return (before) => ({
      html: html === undefined ? before.html : html,
      mjml: html === undefined && mjml === undefined ? before.mjml : null,
    })
  }
  if (hasBothMarkups(given)) throw brokenRule(`${path}.mjml`, notBesideHtml)
  const compiled = await renderer.compileMjml(mjml)
  return () => ({ html: compiled.html, mjml })
}

export const noMarkup: Markup = { html: null, mjml: null }

/** Returns faults of MJML in one sentence for each, for the details of an error. */
export function detailsOf(faults: readonly MjmlFault[], path: string): ErrorDetail[] {
  return faults.map((fault) => ({ path, message: sentenceOf(fault) }))
}

/** Returns a fault of MJML as one sentence. */
export function sentenceOf({ line, message }: MjmlFault): string {
  return line === null || message.includes(`line ${line},`) ? message : `The MJML, line ${line}: ${message}`
}
