import { printable } from '../lib/printable.ts'

/** Prints one JSON value on one line, for programs. */
export function printJson(value: unknown): void {
  console.log(printable(JSON.stringify(value)))
}

/** Prints a sentence on one line, for people. */
export function printLine(text: string): void {
  console.log(printable(text))
}

/** Prints columns under headings, for people; `whenEmpty` when there are no rows. */
export function printTable(rows: readonly Record<string, string>[], whenEmpty: string): void {
  const [first] = rows
  if (first === undefined) {
    console.log(whenEmpty)
    return
  }
  const names = Object.keys(first)
  const lines = [Object.fromEntries(names.map((name) => [name, name])), ...rows.map(printableRow)]
  const widths = names.map((name) => Math.max(...lines.map((line) => line[name]?.length ?? 0)))
  for (const line of lines) {
    console.log(
      names
        .map((name, column) => (line[name] ?? '').padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
  }
}

function printableRow(row: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(row).map(([name, cell]) => [name, printable(cell)]))
}
