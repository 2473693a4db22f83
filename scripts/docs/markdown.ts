/** A part of a page that is generated from a table in the code. */
export type Part = {
  /** The path of the page from the top of the checkout. */
  page: string
  /** The name of the part on its page. */
  name: string
  /** The path of the file it is generated from. */
  source: string
  content: string
}

/** Returns the page with the part replaced. Throws unless the page has the comments of the part exactly once. */
export function replacePart(text: string, { page, name, source, content }: Part): string {
  const begin = `<!-- begin ${name}: made of ${source} by npm run docs:reference -->`
  const end = `<!-- end ${name} -->`
  const found = [...text.matchAll(new RegExp(`^<!-- begin ${name}\\b.*-->$[\\s\\S]*?^${end}$`, 'gm'))]
  const [match, ...others] = found
  if (match === undefined || others.length > 0)
    throw new Error(`${page} must have one "${begin}" and, below it, one "${end}"; it has ${found.length}`)
  const before = text.slice(0, match.index)
  const after = text.slice(match.index + match[0].length)
  return `${before}${begin}\n\n${content}\n\n${end}${after}`
}

/** Returns a Markdown table. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
  return [line(head), `|${'---|'.repeat(head.length)}`, ...rows.map(line)].join('\n')
}

export function code(text: string): string {
  return `\`${text}\``
}
