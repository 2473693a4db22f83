import { Parser } from 'htmlparser2'
import { renderingLimits } from './limits.ts'
import { createLineCounter } from './lines.ts'

/** A fault of MJML. `line`: from 1; null: the whole. `message`: for people, without the line. */
export type MjmlFault = { line: number | null; message: string }

/** Elements whose text MJML leaves out. */
const withoutText = new Set(
  'mjml mj-head mj-body mj-attributes mj-html-attributes mj-selector mj-wrapper mj-section mj-group mj-column mj-hero mj-navbar mj-social mj-carousel mj-accordion mj-accordion-element'.split(
    ' ',
  ),
)

const { mjmlElements, mjmlAttributes, mjmlFaults, depth: maxDepth } = renderingLimits

/**
 * Looks through MJML before it is compiled, in one pass: the compiler calls itself for each level, and takes minutes for
 * thousands of attributes. Returns what is wrong, at most ten faults.
 *
 * @param isMark Whether a text has a mark of Liquid.
 */
export function faultsOfSource(source: string, isMark: (text: string) => boolean): MjmlFault[] {
  const faults: MjmlFault[] = []
  const lineAt = createLineCounter(source)
  const open: { name: string; at: number; hasTextFault: boolean }[] = []
  let elements = 0
  let attributes = 0
  let isOver = false

  const note = (at: number, message: string) => {
    if (faults.length < mjmlFaults) faults.push({ line: lineAt(at), message })
  }
  /** Notes a fault because of which the rest is not looked at. */
  const end = (at: number, message: string) => {
    if (!isOver) faults.splice(mjmlFaults - 1, 1, { line: lineAt(at), message })
    isOver = true
    parser.pause()
  }

  const parser = new Parser(
    {
      onopentagname(name) {
        attributes = 0
        open.push({ name, at: parser.startIndex, hasTextFault: false })
        if (open.length > maxDepth) end(parser.startIndex, `Elements are nested more than ${maxDepth} deep.`)
        if (!isOfMjml(name)) return
        if (++elements > mjmlElements) end(parser.startIndex, `There are more than ${mjmlElements} elements of MJML.`)
        if (name === 'mj-include') note(parser.startIndex, 'MJML cannot include files: write the content here.')
      },
      onattribute() {
        const { name = '', at = 0 } = open.at(-1) ?? {}
        if (++attributes > mjmlAttributes) end(at, `<${name}> has more than ${mjmlAttributes} attributes.`)
      },
      ontext(text) {
        const inside = open.at(-1)
        if (inside === undefined || inside.hasTextFault || !withoutText.has(inside.name) || text.trim() === '') return
        inside.hasTextFault = true
        const place = parser.startIndex + (text.length - text.trimStart().length)
        note(
          place,
          isMark(text)
            ? `MJML drops Liquid that stands directly in <${inside.name}>: put it into <mj-raw>.`
            : `MJML drops text that stands directly in <${inside.name}>: put it into <mj-text>.`,
        )
      },
      onclosetag(_name, isImplied) {
        const closed = open.pop()
        // `<mj-image />` closes where it opens.
        if (closed === undefined || !isImplied || !isOfMjml(closed.name) || closed.at === parser.startIndex) return
        note(closed.at, `<${closed.name}> is not closed.`)
      },
    },
    { decodeEntities: false, recognizeSelfClosing: true },
  )
  parser.write(source)
  if (!isOver) parser.end()
  return faults
}

function isOfMjml(name: string): boolean {
  return name === 'mjml' || name.startsWith('mj-')
}
