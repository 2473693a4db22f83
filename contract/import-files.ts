/*
 * How a file of contacts is read: the limits, the names, and the rules that the server and the dashboard share, so that
 * the dashboard shows a file as the server will read it. Without zod, so that the dashboard can import it.
 */

export const importLimits = {
  /** The file as it is sent, and in UTF-8. Bytes. */
  fileBytes: 1_073_741_824,
  /** Characters of one row, with its quotation marks. */
  rowCharacters: 262_144,
  columns: 500,
  /** Topics that the people of an import are subscribed to. */
  topics: 20,
  columnCharacters: 200,
  /** The head of the file. Bytes in UTF-8. */
  headBytes: 131_072,
  /** Imports of an account that have not ended. */
  unfinished: 5,
  /** Failed rows of an import that are kept. All are counted. */
  failedRows: 100_000,
  /** Characters of a failed row that are kept. */
  failedRowCharacters: 8_192,
  /** Entries of a ZIP, with folders and files that are not read. */
  zipEntries: 1_000,
  /** CSV files of a ZIP. */
  zipFiles: 100,
  /** Columns of all files of a ZIP that are read. */
  zipColumns: 1_000,
  /** A name in a ZIP, with its folders. Bytes. */
  zipNameBytes: 1_024,
  /** Maximum ratio of the unpacked size to the size of the ZIP. It applies to unpacked sizes above `zipFreeBytes`. */
  zipRatio: 100,
  zipFreeBytes: 16_777_216,
} as const

/** The content types of the files. The beginning of a file shows its type, whichever of them it is sent with. */
export const importFileTypes = ['text/csv', 'application/zip'] as const

export const importDelimiters = { comma: ',', semicolon: ';', tab: '\t', pipe: '|' } as const
export type DelimiterName = keyof typeof importDelimiters

/** As the WHATWG Encoding Standard names them. */
export const importEncodings = [
  'utf-8',
  'utf-16le',
  'utf-16be',
  'windows-1250',
  'windows-1251',
  'windows-1252',
  'iso-8859-2',
  'iso-8859-15',
  'koi8-r',
  'macintosh',
  'shift_jis',
  'euc-jp',
  'euc-kr',
  'gb18030',
  'big5',
] as const
export type ImportEncoding = (typeof importEncodings)[number]

/** Fields of a person that a column can be, beside `properties.<key>`. */
export const importFields = ['email', 'firstName', 'lastName', 'name', 'status', 'attributes', 'ignore'] as const

/** A column of a file, and the field that it is. */
export type MappedColumn = { column: string; field: string }

/** Fields that are known by usual names of columns, in small letters and digits only. */
const usualNames: Readonly<Record<string, string>> = {
  email: 'email',
  emailaddress: 'email',
  mail: 'email',
  mailaddress: 'email',
  firstname: 'firstName',
  givenname: 'firstName',
  fname: 'firstName',
  lastname: 'lastName',
  surname: 'lastName',
  familyname: 'lastName',
  lname: 'lastName',
  name: 'name',
  fullname: 'name',
  status: 'status',
  attributes: 'attributes',
}

/** Returns the field that a column is by its name: a usual name, or the key of a property. */
function fieldByName(column: string, propertyKeys: readonly string[]): string {
  if (propertyKeys.includes(column)) return `properties.${column}`
  const plain = column.toLowerCase().replaceAll(/[^a-z0-9]/g, '')
  return (Object.hasOwn(usualNames, plain) ? usualNames[plain] : undefined) ?? 'ignore'
}

/**
 * Returns what the columns of a file are. Those that `mapping` names first; what is left is known by its name, unless
 * its field is taken.
 *
 * @param propertyKeys The keys of the declared properties.
 */
export function mapColumns(
  names: readonly string[],
  { mapping, propertyKeys }: { mapping: Readonly<Record<string, string>>; propertyKeys: readonly string[] },
): MappedColumn[] {
  const taken = new Set(Object.values(mapping))
  return names.map((column) => {
    if (Object.hasOwn(mapping, column)) return { column, field: mapping[column] ?? 'ignore' }
    const field = fieldByName(column, propertyKeys)
    if (taken.has(field)) return { column, field: 'ignore' }
    if (field !== 'ignore') taken.add(field)
    return { column, field }
  })
}

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

/** Returns true for the first bytes of a ZIP, which an Excel workbook is too. Four are enough. */
export function isZip([first, second, third, fourth]: Uint8Array): boolean {
  if (first !== 0x50 || second !== 0x4b) return false
  // An empty one begins with its end.
  return (third === 3 && fourth === 4) || (third === 5 && fourth === 6)
}

/** Returns the delimiter that is most often in the first line, outside of quotation marks. */
export function findDelimiter(beginning: string): DelimiterName {
  const counts = new Map<string, number>()
  let isQuoted = false
  for (const character of beginning) {
    if (character === '"') isQuoted = !isQuoted
    else if (!isQuoted && (character === '\n' || character === '\r')) {
      if (counts.size > 0) break
    } else if (!isQuoted) counts.set(character, (counts.get(character) ?? 0) + 1)
  }
  const entries = Object.entries(importDelimiters) as [DelimiterName, string][]
  const found = entries.map(([name, character]) => ({ name, count: counts.get(character) ?? 0 }))
  return found.reduce((best, next) => (next.count > best.count ? next : best)).name
}

/** Columns that only files of Mailchimp with people who get no email have. */
export const mailchimpTimes: readonly string[] = ['CLEAN_TIME', 'UNSUB_TIME']

/**
 * Returns what all rows of a file are by its columns, or null: files of Mailchimp with people who unsubscribed or whose
 * address bounced have columns of their own.
 */
export function suppressionOf(names: readonly string[]): 'unsubscribe' | 'hard_bounce' | null {
  if (names.includes('CLEAN_TIME')) return 'hard_bounce'
  return names.includes('UNSUB_TIME') ? 'unsubscribe' : null
}

/** Returns the encoding that the first bytes of a file show: by a byte order mark. */
export function encodingByMark(bytes: Uint8Array): ImportEncoding | null {
  if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) return 'utf-8'
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return 'utf-16le'
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return 'utf-16be'
  return null
}

/** Returns the encoding that the first bytes of a file show: ASCII letters in UTF-16 have a zero as the other byte. */
export function encodingByZeros([first, second, third, fourth]: Uint8Array): ImportEncoding | null {
  if (first !== 0 && second === 0 && third !== 0 && fourth === 0) return 'utf-16le'
  if (first === 0 && second !== 0 && third === 0 && fourth !== 0) return 'utf-16be'
  return null
}
