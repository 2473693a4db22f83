import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** The top of the checkout. */
export const root = join(import.meta.dirname, '..', '..')

export type Fence = {
  language: string
  content: string
}

/** A Markdown file, as far as the tests read it. */
export type Document = {
  /** Its path from the top of the checkout. */
  name: string
  text: string
  /** Returns the text from a heading up to the next one of its level or above. Throws when there is no such heading. */
  section(title: string): string
}

export function readDocument(name: string): Document {
  const text = readFileSync(join(root, name), 'utf8')
  return {
    name,
    text,
    section(title) {
      const found = sectionIn(text, title)
      if (found === undefined) throw new Error(`${name} has no heading "${title}"`)
      return found
    },
  }
}

/** Reads the documents of the project: the README, then every page below `docs/`, by path. */
export function readPages(): Document[] {
  return ['README.md', ...globSync('docs/**/*.md', { cwd: root }).sort()].map(readDocument)
}

/**
 * Returns the section of a heading, from the page that has it. Throws unless exactly one has.
 * So a section can move to another page without its tests, and cannot be there in two versions.
 */
export function sectionOfPages(title: string): string {
  const found = readPages().flatMap(({ name, text }) => {
    const section = sectionIn(text, title)
    return section === undefined ? [] : [{ name, section }]
  })
  const [only, ...others] = found
  if (only === undefined || others.length > 0)
    throw new Error(
      `one page must have the heading "${title}": ${found.map(({ name }) => name).join(', ') || 'none has'}`,
    )
  return only.section
}

function sectionIn(text: string, title: string): string | undefined {
  const headings = headingsOf(text)
  const index = headings.findIndex((heading) => heading.title === title)
  const heading = headings[index]
  if (heading === undefined) return undefined
  const next = headings.slice(index + 1).find(({ level }) => level <= heading.level)
  return text.slice(heading.at, next?.at)
}

/** The text on one line, as a browser shows it: sentences are found wherever their lines were broken. */
export function unwrapped(text: string): string {
  return text.replaceAll(/\s+/g, ' ')
}

/** The headings, with where each begins. A `#` in a fence is none. */
export function headingsOf(text: string): { title: string; level: number; at: number }[] {
  const prose = text.replaceAll(fence, (match) => ' '.repeat(match.length))
  return [...prose.matchAll(/^(#+) (.+)$/gm)].map(({ 1: marks = '', 2: title = '', index }) => ({
    title,
    level: marks.length,
    at: index,
  }))
}

const fence = /^```(\w*)\n([\s\S]*?)^```$/gm

/** The fenced blocks, in order. */
export function fencesOf(text: string): Fence[] {
  return [...text.matchAll(fence)].map(({ 1: language = '', 2: content = '' }) => ({ language, content }))
}

/** The one block of a language. Throws when there are none or several. */
export function fenceOf(text: string, language: string): string {
  const [found, ...others] = fencesOf(text).filter((block) => block.language === language)
  if (found === undefined || others.length > 0)
    throw new Error(`there is not one block of ${language}, but another number`)
  return found.content
}

/** The text without its fenced blocks. */
export function proseOf(text: string): string {
  return text.replaceAll(fence, '')
}

/** The first table: its rows without the head, each cell as it is written. */
export function tableOf(text: string): string[][] {
  const table = /^\|.+\|\n\|[-| ]+\|\n((?:\|.*\|\n)+)/m.exec(text)?.[1]
  if (table === undefined) throw new Error('there is no table')
  return table
    .trimEnd()
    .split('\n')
    .map((row) =>
      row
        .slice(1, -1)
        .split('|')
        .map((cell) => cell.trim()),
    )
}

/** Returns the texts in backticks. */
export function codeIn(text: string): string[] {
  return [...text.matchAll(/`([^`\n]+)`/g)].map(([, code = '']) => code)
}
