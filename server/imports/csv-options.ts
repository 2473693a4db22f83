import { type DelimiterName, importDelimiters } from '../../contract/imports.ts'

/** How all files are read: RFC 4180, with any line breaks, and quotation marks inside of cells that are not quoted. */
export function csvOptions(delimiter: DelimiterName) {
  return {
    delimiter: importDelimiters[delimiter],
    record_delimiter: ['\r\n', '\n', '\r'],
    relax_column_count: true,
    relax_quotes: true,
    skip_empty_lines: true,
    // Not at the end: a cell such as "a"b would then be a fault. Cells are trimmed when they are read.
    ltrim: true,
  }
}
