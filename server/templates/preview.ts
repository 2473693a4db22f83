import { type TemplatePart, type TemplatePreview, templateChecks } from '../../contract/templates.ts'
import type { MessageCheck, TemplateContent, Variables } from '../rendering/renderer.ts'
import { sentenceOf } from './mjml.ts'
import type { AccountRenderer } from './renderer-turns.ts'

/** A content to look at. With MJML, `html` is what that was compiled to; null: it is compiled now. */
export type PreviewedContent = TemplateContent & { mjml: string | null }

type Errors = TemplatePreview['errors']

/** Renders a content and says what is wrong with it, part by part, and what is not good about it. */
export async function previewOf(
  renderer: AccountRenderer,
  { mjml, ...written }: PreviewedContent,
  variables: Variables,
): Promise<TemplatePreview> {
  const { html, errors: ofMjml } = await compiled(renderer, { html: written.html, mjml })
  const content = { ...written, html }
  const [rendering] = ofMjml.length > 0 ? [] : await renderer.render(content, [variables])
  if (rendering?.status !== 'rendered') {
    const errors = [...ofMjml, ...(await errorsOf(renderer, { ...content, mjml }, variables))]
    return { subject: null, html: null, text: null, errors, checks: [] }
  }
  const { rendered } = rendering
  const checks: MessageCheck[] = await renderer.check(rendered)
  if (!mentionsUnsubscribing(content)) checks.push({ code: 'no_unsubscribe_link', line: null, message: null })
  return {
    ...rendered,
    errors: [],
    checks: checks.map((check) => ({ ...check, message: check.message ?? templateChecks[check.code] })),
  }
}

async function compiled(
  renderer: AccountRenderer,
  { html, mjml }: Pick<PreviewedContent, 'html' | 'mjml'>,
): Promise<{ html: string | null; errors: Errors }> {
  if (mjml === null || html !== null) return { html, errors: [] }
  const { html: made, faults } = await renderer.compileMjml(mjml)
  const errors = (faults ?? []).map((fault) => ({
    part: 'mjml' as const,
    line: fault.line,
    message: sentenceOf(fault),
  }))
  return { html: made, errors }
}

function mentionsUnsubscribing({ html, text }: TemplateContent): boolean {
  return [html, text].some((source) => source?.includes('unsubscribeUrl'))
}

/** Renders each part by itself: a fault of one hides those of others. */
async function errorsOf(renderer: AccountRenderer, content: PreviewedContent, variables: Variables): Promise<Errors> {
  const { subject, preheader, html, mjml, text } = content
  const alone = { subject: 'x', preheader: null, html: null, text: 'x' }
  const parts: [TemplatePart, TemplateContent][] = [
    ['subject', { ...alone, subject }],
    ['preheader', { ...alone, preheader, html: preheader === null ? null : '' }],
    [mjml === null ? 'html' : 'mjml', { ...alone, html }],
    ['text', { ...alone, html: text === null ? html : null, text: text ?? (html === null ? 'x' : null) }],
  ]
  const errors: Errors = []
  const seen = new Set<string>()
  for (const [part, one] of parts) {
    const [rendering] = await renderer.render(one, [variables])
    // The text that is made from the HTML has the faults of the HTML.
    if (rendering?.status !== 'failed' || seen.has(rendering.reason)) continue
    seen.add(rendering.reason)
    const message =
      part === 'mjml' ? await reasonInMjml(renderer, { mjml, variables }, rendering.reason) : rendering.reason
    const [, line] = /\bline (\d+), column \d+/.exec(message) ?? []
    errors.push({ part, line: line === undefined ? null : Number(line), message })
  }
  return errors
}

/** Returns why the HTML of MJML cannot be rendered, with the line of the MJML: its Liquid is the same. */
async function reasonInMjml(
  renderer: AccountRenderer,
  { mjml, variables }: { mjml: string | null; variables: Variables },
  reason: string,
): Promise<string> {
  const asText = { subject: 'x', preheader: null, html: null, text: mjml }
  const [rendering] = await renderer.render(asText, [variables])
  return rendering?.status === 'failed' ? rendering.reason.replace(/^The text/, 'The MJML') : reason
}
