import { CsvError } from 'csv-parse'
import { parse } from 'csv-parse/sync'
import {
  csvOptions,
  type DelimiterName,
  findDelimiter,
  importLimits,
  mapColumns,
  suppressionOf,
} from '../../contract/import-files.ts'
import type { ImportColumn } from '../database/tables/imports.ts'
import { brokenRule, brokenRules, type ErrorDetail } from '../shared/errors.ts'
import { fieldFault } from './fields.ts'

/** The head of a file. */
export type Head = {
  delimiter: DelimiterName
  columns: ImportColumn[]
  /** The suppression reason of all rows, in files of Mailchimp with people who get no email. Null in other files. */
  suppressesAs: 'unsubscribe' | 'hard_bounce' | null
  /** Where the first row begins. Bytes in UTF-8. */
  bytes: number
}

export type HeadOptions = {
  /** Default: found in the head. */
  delimiter?: DelimiterName | undefined
  /** The fields of columns, by the name of the column. */
  mapping?: Readonly<Record<string, string>> | undefined
  /** The keys of the declared properties. */
  propertyKeys: readonly string[]
  /** Whether it is one of several files: it may lack a mapped column, and one of addresses. Default: false. */
  isOneOfSeveral?: boolean
}

/**
 * Reads the head of a file from its beginning.
 *
 * Throws `rule_violation` when there is no head, when it is too long or has too many columns or two of one name, when no
 * column has addresses, and when `mapping` names a column or a field that is not there.
 */
export function readHead(
  beginning: string,
  { delimiter: given, mapping: wanted = {}, propertyKeys, isOneOfSeveral = false }: HeadOptions,
): Head {
  const delimiter = given ?? findDelimiter(beginning)
  const { names, bytes } = readNames(beginning, delimiter)
  if (names.length > importLimits.columns) {
    throw brokenRule('body', `must have at most ${importLimits.columns} columns; it has ${names.length}`)
  }
  const faults: ErrorDetail[] = []
  const seen = new Set<string>()
  for (const name of names) {
    const shown = JSON.stringify(name.slice(0, 50))
    if (name.length > importLimits.columnCharacters || !name.isWellFormed() || name.includes('\u0000')) {
      const message = `must have names of columns of at most ${importLimits.columnCharacters} characters of text; ${shown} is none`
      faults.push({ path: 'body', message })
    } else if (name !== '' && seen.has(name)) {
      faults.push({ path: 'body', message: `must name each column once: ${shown} is there twice` })
    }
    seen.add(name)
  }
  const mapping = isOneOfSeveral
    ? Object.fromEntries(Object.entries(wanted).filter(([name]) => seen.has(name)))
    : wanted
  for (const [name, field] of Object.entries(mapping)) {
    const path = `query.columns.${name}`
    if (!seen.has(name)) faults.push({ path, message: 'is no column of the file' })
    const fault = fieldFault(field, propertyKeys)
    if (fault !== null) faults.push({ path, message: fault })
  }
  const columns = mapColumns(names, { mapping, propertyKeys })
  const used = columns.map(({ field }) => field).filter((field) => field !== 'ignore')
  const twice = used.find((field, index) => used.indexOf(field) !== index)
  if (twice !== undefined) faults.push({ path: 'query.columns', message: `${twice} can be one column only` })
  if (!used.includes('email') && !isOneOfSeveral) {
    const message = `must say which column has the addresses, as columns[name]=email: none of the names is known (${names.slice(0, 10).join(', ').slice(0, 200)})`
    faults.push({ path: 'query.columns', message })
  }
  if (faults.length > 0) throw brokenRules(faults)
  return { delimiter, columns, bytes, suppressesAs: suppressionOf(names) }
}

function readNames(beginning: string, delimiter: DelimiterName): { names: string[]; bytes: number } {
  try {
    const [head] = parse(beginning, {
      ...csvOptions(delimiter),
      max_record_size: importLimits.headBytes,
      to: 1,
      info: true,
    }) as unknown as { record: string[]; info: { bytes: number } }[]
    if (head === undefined) throw brokenRule('body', 'must be CSV with a head that names the columns: it is empty')
    return { names: head.record.map((name) => name.trim()), bytes: head.info.bytes }
  } catch (error) {
    if (!(error instanceof CsvError)) throw error
    const message = `must be CSV with a head that names the columns, in at most ${importLimits.headBytes} bytes: ${error.message}`
    throw brokenRule('body', message)
  }
}
