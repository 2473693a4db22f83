import { Context, type Liquid, toValueSync } from 'liquidjs'
import { LRUCache } from 'lru-cache'
import { BoundedOutput } from './bounded-output.ts'
import type { RenderResult } from './frames.ts'
import { renderingLimits } from './limits.ts'
import { createLiquid, preheaderMark } from './liquid.ts'
import { countTags } from './liquid-source.ts'
import { placeOfPreheader, preheaderBlock } from './preheader.ts'
import type { TemplateContent, Variables } from './renderer.ts'
import { attempt, oneLine, reasonOf, TemplateFault } from './template-faults.ts'
import { textFromHtml, textSourceFromHtml, tidy } from './text-from-html.ts'

/** A compiled content. */
export type CompiledTemplate = {
  /** The result of each rendering, where the content is wrong for everybody. */
  fault: RenderResult | null
  /** Renders the texts: subject, HTML or null, text or null. Never throws. */
  render(variables: Variables): RenderResult
}

export type TemplateEngine = {
  /** Compiles a `TemplateContent` in JSON. What is wrong with it is the result of each rendering. Never throws. */
  compile(json: string): CompiledTemplate
}

/** Limits of the compiled templates that are kept. A tag counts as so many characters: what it needs compiled. */
const kept = { templates: 100, characters: 8_388_608, charactersOfTag: 500 }

/** The limits of each part, as written and as rendered. UTF-16 code units. */
const { sourceLength, subjectSourceLength, preheaderSourceLength, outputLength, preheaderLength } = renderingLimits
const maxima = {
  subject: { source: subjectSourceLength, output: outputLength },
  preheader: { source: preheaderSourceLength, output: preheaderLength },
  HTML: { source: sourceLength, output: outputLength },
  text: { source: sourceLength, output: outputLength },
}

type Renders = (variables: Variables) => BoundedOutput

/** Renders Liquid. Runs in rendering processes only: a template may use up the time and the memory of its process. */
export function createTemplateEngine(): TemplateEngine {
  const escaping = createLiquid({ isEscaped: true })
  const plain = createLiquid({ isEscaped: false })
  const cache = new LRUCache<string, CompiledTemplate>({ max: kept.templates, maxSize: kept.characters })
  const compileContent = (content: TemplateContent) => compile(content, { escaping, plain })

  return {
    compile(json) {
      const size = json.length + kept.charactersOfTag * countTags(json, Number.POSITIVE_INFINITY)
      const compiled = cache.get(json) ?? compileContent(JSON.parse(json))
      cache.set(json, compiled, { size })
      return compiled
    },
  }
}

function compile(
  content: TemplateContent,
  { escaping, plain }: Record<'escaping' | 'plain', Liquid>,
): CompiledTemplate {
  const { preheader, html } = content
  try {
    const subjectOf = parse('subject', content.subject, plain)
    const preheaderOf = preheader === null ? null : parse('preheader', preheader, escaping)
    const htmlOf = html === null ? null : parse('HTML', html, escaping)
    const textSource = content.text ?? (html === null ? null : attempt('text', () => textSourceFromHtml(html)))
    const textOf = textSource === null ? null : parse('text', textSource, plain)
    const markedOf = html === null || preheader === null ? htmlOf : parse('HTML', withMark(html), escaping)

    const render = (variables: Variables) =>
      resultOf(() => {
        const subject = readSubject(subjectOf(variables).buffer)
        const hidden = preheaderOf === null ? '' : oneLine(preheaderOf(variables).buffer)
        const output = markedOf?.(variables) ?? null
        const text = textOf === null ? textOfOutput(output) : textOf(variables).buffer
        const tidied = text !== null && content.text === null ? tidy(text) : text
        const shown = output === null || hidden === '' ? output?.buffer : output.with(preheaderBlock(hidden))
        // An HTML of images alone has no text.
        return [subject, shown ?? null, tidied === '' && output !== null ? null : tidied]
      })
    return { fault: null, render }
  } catch (error) {
    const fault = failureOf(error)
    return { fault, render: () => fault }
  }
}

/** Parses a part. Throws TemplateFault, and so does what it returns. */
function parse(part: keyof typeof maxima, source: string, engine: Liquid): Renders {
  const { source: maxSource, output: maxOutput } = maxima[part]
  if (source.length > maxSource + preheaderMark.length) {
    throw new TemplateFault(`The ${part} has more than ${maxSource} characters.`)
  }
  if (countTags(source, renderingLimits.tags) > renderingLimits.tags) {
    throw new TemplateFault(`The ${part} has more than ${renderingLimits.tags} tags of Liquid.`)
  }
  const templates = attempt(part, () => engine.parse(source))
  return (variables) =>
    attempt(part, () => {
      const output = new BoundedOutput(part, maxOutput)
      const context = new Context(variables, engine.options, { sync: true }, { liquid: engine })
      toValueSync(engine.renderer.renderTemplates(templates, context, output))
      return output
    })
}

function withMark(html: string): string {
  const at = placeOfPreheader(html)
  return html.slice(0, at) + preheaderMark + html.slice(at)
}

function textOfOutput(output: BoundedOutput | null): string | null {
  return output === null ? null : attempt('text', () => textFromHtml(output.buffer))
}

/** A header cannot have line breaks, and no more octets than one line of a message: RFC 5322 §2.1.1. */
function readSubject(rendered: string): string {
  const subject = oneLine(rendered)
  if (subject === '') throw new TemplateFault('The subject is empty.')
  if (Buffer.byteLength(subject) > renderingLimits.subjectOctets) {
    throw new TemplateFault(`The subject becomes longer than ${renderingLimits.subjectOctets} octets.`)
  }
  return subject
}

function resultOf(render: () => (string | null)[]): RenderResult {
  try {
    // No message has U+0000, which PostgreSQL cannot store.
    return { ok: true, texts: render().map((text) => text?.replaceAll('\u0000', '') ?? null) }
  } catch (error) {
    return failureOf(error)
  }
}

function failureOf(error: unknown): RenderResult {
  return { ok: false, reason: reasonOf(error) }
}
