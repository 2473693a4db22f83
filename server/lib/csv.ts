/** A cell as it may be, which a spreadsheet would take for a formula: CWE-1236. Numbers with a sign are none. */
const formula = /^[=+\-@\t\r]/
const number = /^[+-]?\d+(?:[.,]\d+)?$/

/**
 * Returns a row of CSV with its line break. A cell that a spreadsheet could take for a formula gets an apostrophe in
 * front, which spreadsheets do not show.
 *
 * Source: RFC 4180 §2.
 */
export function csvRow(cells: readonly (string | number | boolean | null)[]): string {
  return `${cells.map(csvCell).join(',')}\r\n`
}

function csvCell(value: string | number | boolean | null): string {
  if (value === null) return ''
  const text = String(value)
  const safe = formula.test(text) && !number.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(safe) || safe !== safe.trim() ? `"${safe.replaceAll('"', '""')}"` : safe
}
