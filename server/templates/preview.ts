import { type TemplatePart, type TemplatePreview, templateChecks } from '../../contract/templates.ts'
import type { MessageCheck, TemplateContent, Variables } from '../rendering/renderer.ts'
import type { AccountRenderer } from './account-turns.ts'

/** Renders a template and says what is wrong with it, part by part, and what is not good about it. */
export async function previewOf(
  renderer: AccountRenderer,
  content: TemplateContent,
  variables: Variables,
): Promise<TemplatePreview> {
  const [rendering] = await renderer.render(content, [variables])
  if (rendering?.status !== 'rendered') {
    return { subject: null, html: null, text: null, errors: await errorsOf(renderer, content, variables), checks: [] }
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

function mentionsUnsubscribing({ html, text }: TemplateContent): boolean {
  return [html, text].some((source) => source?.includes('unsubscribeUrl'))
}

/** Renders each part by itself: a fault of one hides those of others. */
async function errorsOf(
  renderer: AccountRenderer,
  content: TemplateContent,
  variables: Variables,
): Promise<TemplatePreview['errors']> {
  const { subject, preheader, html, text } = content
  const alone = { subject: 'x', preheader: null, html: null, text: 'x' }
  const parts: [TemplatePart, TemplateContent][] = [
    ['subject', { ...alone, subject }],
    ['preheader', { ...alone, preheader, html: preheader === null ? null : '' }],
    ['html', { ...alone, html }],
    ['text', { ...alone, html: text === null ? html : null, text }],
  ]
  const errors: TemplatePreview['errors'] = []
  for (const [part, one] of parts) {
    const [rendering] = await renderer.render(one, [variables])
    if (rendering?.status !== 'failed') continue
    const { reason } = rendering
    // The text that is made from the HTML has the faults of the HTML.
    if (errors.some(({ message }) => message === reason)) continue
    const [, line] = /\bline (\d+), column \d+/.exec(reason) ?? []
    errors.push({ part, line: line === undefined ? null : Number(line), message: reason })
  }
  return errors
}
