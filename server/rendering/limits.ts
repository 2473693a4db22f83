import type { RenderResult } from './frames.ts'

/*
 * The limits of rendering. Templates come from outside: each limit is looked at before the work that it bounds.
 */

export const renderingLimits = {
  /** Of HTML, of text and of MJML as they are written, each. UTF-16 code units. */
  sourceLength: 524_288,
  /** Of a subject as it is written. UTF-16 code units. */
  subjectSourceLength: 2_000,
  /** Of a preheader as it is written. UTF-16 code units. */
  preheaderSourceLength: 1_000,
  /** Tags of Liquid in one part: `{{ … }}` and `{% … %}`. */
  tags: 10_000,
  /** Of rendered HTML and of rendered text, each. UTF-16 code units. */
  outputLength: 524_288,
  /** Of all texts that one request to a process renders, but for its first person. UTF-16 code units. */
  batchOutputLength: 33_554_432,
  /** Of a rendered subject: RFC 5322 §2.1.1. Octets in UTF-8. */
  subjectOctets: 998,
  /** Of a rendered preheader. UTF-16 code units. */
  preheaderLength: 4_000,
  /** The variables of one person, as JSON: more than values, properties and their fallbacks can be together. Bytes. */
  variablesBytes: 524_288,
  /** Nested elements of HTML that text is made from, and of MJML. */
  depth: 256,
  /** Elements of MJML in one source; each becomes some hundred characters of HTML. */
  mjmlElements: 2_000,
  /** Of one element of MJML: the compiler takes minutes for thousands. */
  mjmlAttributes: 100,
  /** Faults of one MJML that are told. */
  mjmlFaults: 10,
  /** Time limit for compiling MJML, with the loading of the compiler. Milliseconds. */
  mjmlMs: 5_000,
  /** Time limit for rendering one part. Liquid checks it between tags. Milliseconds. */
  renderMs: 500,
  /** Maximum size of all strings and lists together that one part makes. Characters and entries. */
  renderUnits: 4_000_000,
  /** Of a message to people who are told of a fault. Characters. */
  reasonLength: 300,
} as const

/** Returns the length of the texts of a result. UTF-16 code units. */
export function lengthOfTexts(result: RenderResult): number {
  return result.ok ? result.texts.reduce((sum, text) => sum + (text?.length ?? 0), 0) : 0
}
