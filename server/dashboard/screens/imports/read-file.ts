import { parse } from 'csv-parse/browser/esm/sync'
import {
  csvOptions,
  type DelimiterName,
  encodingByMark,
  encodingByZeros,
  findDelimiter,
  type ImportEncoding,
  importLimits,
  isZip,
} from '../../../../contract/import-files.ts'

/** The beginning of a file, read as the service will read it. `zip`: the service unpacks it. */
export type FileBeginning = CsvBeginning | 'zip'

/** An error in a file, as a message for people. */
export type FileFault = { fault: string }

export type CsvBeginning = {
  encoding: ImportEncoding
  delimiter: DelimiterName
  /** The names of the columns. */
  names: string[]
  /** The first rows below them. */
  rows: string[][]
}

/** Rows that are shown. */
const shownRows = 3
/** The longest head, and some rows. */
const readBytes = 2 * importLimits.headBytes

type Reading = { encoding: ImportEncoding | null; delimiter: DelimiterName | null }

/**
 * Reads the beginning of a file, however long the file is.
 *
 * @param reading What the reader chose. Null: it is found as the service finds it.
 */
export async function readBeginning(file: Blob, reading: Reading): Promise<FileBeginning | FileFault> {
  if (file.size > importLimits.fileBytes) {
    return { fault: 'The file is larger than 1 GiB: import it in parts, each with the head.' }
  }
  let bytes: Uint8Array
  try {
    bytes = new Uint8Array(await file.slice(0, readBytes).arrayBuffer())
  } catch {
    return { fault: 'The browser cannot read the file: perhaps it was moved or changed. Choose it again.' }
  }
  if (isZip(bytes)) return 'zip'
  const { text, encoding } = decode(bytes, reading.encoding)
  const delimiter = reading.delimiter ?? findDelimiter(text)
  const records = parseFirst(text, delimiter)
  if (records === null) {
    return { fault: 'The first row is longer than 128 KiB, or has a quotation mark that is not closed.' }
  }
  const [head, ...rows] = records
  if (head === undefined) return { fault: 'The file is empty: its first row must name the columns.' }
  const names = head.map((name) => name.trim())
  const fault = faultOf(names)
  return fault === null ? { encoding, delimiter, names, rows } : { fault }
}

function decode(bytes: Uint8Array, chosen: ImportEncoding | null): { text: string; encoding: ImportEncoding } {
  // As the service does, the mark of the file decides before what was chosen.
  const known = encodingByMark(bytes) ?? chosen ?? encodingByZeros(bytes)
  // With `stream`, a character that is cut off at the end is no fault.
  const read = (encoding: ImportEncoding, fatal = false) =>
    new TextDecoder(encoding, { fatal }).decode(bytes, { stream: true })
  if (known !== null) return { text: read(known), encoding: known }
  try {
    return { text: read('utf-8', true), encoding: 'utf-8' }
  } catch {
    return { text: read('windows-1252'), encoding: 'windows-1252' }
  }
}

/** Returns the head and the first rows, only the head where the rest is cut off in a row, or null. */
function parseFirst(text: string, delimiter: DelimiterName): string[][] | null {
  for (const to of [1 + shownRows, 1]) {
    try {
      return parse(text, { ...csvOptions(delimiter), to }) as string[][]
    } catch {
      // Fewer rows may do.
    }
  }
  return null
}

function faultOf(names: readonly string[]): string | null {
  const { columns, columnCharacters } = importLimits
  if (names.length > columns) return `The file has ${names.length} columns. At most ${columns} can be read.`
  const long = names.find((name) => name.length > columnCharacters)
  if (long !== undefined) {
    return `The name of a column is longer than ${columnCharacters} characters: “${long.slice(0, 50)}…”. Is the first row the head?`
  }
  const twice = names.find((name, index) => name !== '' && names.indexOf(name) !== index)
  return twice === undefined ? null : `Two columns are called “${twice.slice(0, 50)}”: rename one of them in the file.`
}
