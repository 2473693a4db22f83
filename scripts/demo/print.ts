import { stdout } from 'node:process'
import { styleText } from 'node:util'

type Style = Parameters<typeof styleText>[0]

/** Returns the line in colour when stdout is a terminal that supports it. */
function styled(style: Style, line: string): string {
  return styleText(style, line, { stream: stdout })
}

/** Prints the heading of a part. */
export function heading(title: string): void {
  console.log(`\n${styled('bold', title)}`)
}

export function line(content: string): void {
  console.log(`  ${content}`)
}

export function good(content: string): void {
  line(styled('green', `✓ ${content}`))
}

export function bad(content: string): void {
  line(styled('yellow', `✗ ${content}`))
}

/** Prints names and values, one pair per line, with the values in a column. */
export function table(rows: readonly (readonly [string, string])[]): void {
  const width = Math.max(...rows.map(([name]) => name.length))
  for (const [name, value] of rows) line(`${styled('cyan', name.padEnd(width))}  ${value}`)
}

/** Prints JSON text, indented. */
export function json(text: string): void {
  for (const row of JSON.stringify(JSON.parse(text), null, 2).split('\n')) line(styled('dim', row))
}
