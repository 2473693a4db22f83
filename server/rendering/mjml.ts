import type { MjmlError } from 'mjml-browser'
import { renderingLimits } from './limits.ts'
import { createLiquid } from './liquid.ts'
import { countTags, replaceSegments } from './liquid-source.ts'
import { faultsOfSource, type MjmlFault } from './mjml-source.ts'
import { attempt, oneLine, reasonOf, TemplateFault } from './template-faults.ts'

export type CompiledMjml = { html: string; faults: null } | { html: null; faults: MjmlFault[] }

/** Characters for private use: no MJML should have them. */
const [opening, closing] = ['\ue000', '\ue001']
const mark = /\ue000(\d+)\ue001/g

const liquid = createLiquid({ isEscaped: true })

/**
 * Compiles MJML with Liquid to HTML with the same Liquid. Includes no files and adds no web fonts. Never throws. Runs in
 * rendering processes only: what is hostile may use up the time and the memory of its process.
 */
export async function compileMjml(source: string): Promise<CompiledMjml> {
  try {
    return await compile(source)
  } catch (error) {
    const reason = reasonOf(error)
    const [, line] = /\bline (\d+), column \d+/.exec(reason) ?? []
    return faulty([{ line: line === undefined ? null : Number(line), message: reason }])
  }
}

async function compile(source: string): Promise<CompiledMjml> {
  const { sourceLength, outputLength, tags: maxTags } = renderingLimits
  if (source.length > sourceLength) throw new TemplateFault(`The MJML has more than ${sourceLength} characters.`)
  if (countTags(source, maxTags) > maxTags) throw new TemplateFault(`The MJML has more than ${maxTags} tags of Liquid.`)
  if (source.includes(opening) || source.includes(closing)) {
    throw new TemplateFault('The MJML has the characters U+E000 or U+E001, which are for private use: remove them.')
  }
  attempt('MJML', () => liquid.parse(source))

  const { marked, tags, lineOf } = withMarks(source)
  const faults = faultsOfSource(marked, (text) => text.includes(opening))
  if (faults.length > 0) return faulty(faults.map(({ line, message }) => ({ line: lineOf(line), message })))

  const { html, errors } = await compileMarked(marked)
  const ofCompiler = errors.flatMap((error) => faultsOfError(error, { tags, lineOf }))
  if (ofCompiler.length > 0) return faulty(ofCompiler)
  const kept = new Set(Array.from(html.matchAll(mark), ([, index]) => Number(index)))
  const dropped = tags.filter(({ text }, index) => text.startsWith('{%') && !kept.has(index))
  if (dropped.length > 0) {
    return faulty(
      dropped.map(({ line }) => ({ line, message: 'MJML drops this tag of Liquid: put it into <mj-raw>.' })),
    )
  }
  const restored = html.replace(mark, (_mark, index) => tags[Number(index)]?.text ?? '')
  if (restored.length > outputLength) {
    throw new TemplateFault(`The HTML that the MJML makes is longer than ${outputLength} characters: write less MJML.`)
  }
  attempt('HTML', () => liquid.parse(restored))
  return { html: restored, faults: null }
}

/** The compiler, which takes some time to load: few processes need it. */
async function compileMarked(source: string): Promise<{ html: string; errors: MjmlError[] }> {
  const { default: mjml2html } = await import('mjml-browser')
  try {
    return await mjml2html(source, { ignoreIncludes: true, validationLevel: 'soft', fonts: {}, keepComments: true })
  } catch (error) {
    throw new TemplateFault(reasonOfCompiler(error), { cause: error })
  }
}

function reasonOfCompiler(error: unknown): string {
  if (error instanceof RangeError) return 'The MJML nests too deep: nest fewer elements.'
  const message = error instanceof Error ? error.message : 'unknown fault'
  return /^(Parsing failed|Malformed MJML)/.test(message)
    ? 'The MJML has no content: it must be one <mjml> with an <mj-body>.'
    : `The MJML cannot be compiled: ${message}`
}

type Tag = { text: string; line: number }
type Marked = {
  marked: string
  tags: Tag[]
  /** Returns the line of the source for a line of `marked`. */
  lineOf: (line: number | null) => number | null
}

/** Puts a mark in place of each tag of Liquid: what stands in them is not for the compiler to read. */
function withMarks(source: string): Marked {
  const tags: Tag[] = []
  /** For each line of `marked` that a tag ends, how many lines of the source it took. */
  const taken: { line: number; lines: number }[] = []
  let end = 0
  let line = 1
  let lost = 0
  const marked = replaceSegments(source, (text, index, at) => {
    line += countLines(source.slice(end, at))
    const lines = countLines(text)
    tags.push({ text, line })
    if (lines > 0) taken.push({ line: line - lost, lines })
    end = at + text.length
    line += lines
    lost += lines
    return markOf(index)
  })
  const lineOf = (wanted: number | null) =>
    wanted === null ? null : taken.reduce((sum, { line, lines }) => (line < wanted ? sum + lines : sum), wanted)
  return { marked, tags, lineOf }
}

function countLines(text: string): number {
  let count = 0
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) count++
  return count
}

function markOf(index: number): string {
  return `${opening}${index}${closing}`
}

/** Colors and texts are written as they are; MJML calculates with others, or decides by them. */
const mayBeLiquid = /has invalid value: .* for type Color/s

function faultsOfError({ line, message, tagName }: MjmlError, { tags, lineOf }: Omit<Marked, 'marked'>): MjmlFault[] {
  const isOfLiquid = message.includes(opening)
  if (isOfLiquid && mayBeLiquid.test(message)) return []
  const shown = oneLine(message.replace(mark, (_mark, index) => tags[Number(index)]?.text ?? '')).replace(/\.?$/, '.')
  const hint = isOfLiquid ? ' Liquid cannot stand here: MJML needs the value when it compiles.' : ''
  return [{ line: lineOf(line), message: cut(`<${tagName}>: ${shown}${hint}`) }]
}

function cut(text: string): string {
  const { reasonLength } = renderingLimits
  return text.length <= reasonLength ? text : `${text.slice(0, reasonLength - 1)}…`
}

function faulty(faults: readonly MjmlFault[]): CompiledMjml {
  return { html: null, faults: faults.slice(0, renderingLimits.mjmlFaults) }
}
