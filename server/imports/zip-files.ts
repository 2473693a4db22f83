import { importLimits } from '../../contract/import-files.ts'
import type { IgnoredFile, ImportedFile } from '../database/tables/imports.ts'
import { brokenRule, brokenRules, DomainError } from '../shared/errors.ts'
import type { Head } from './read-head.ts'
import { shown, type ZipEntry, ZipFaultError } from './zip-directory.ts'

/** A CSV file of a ZIP whose head was read. */
export type ZipFilePlan = { entry: ZipEntry; head: Head; readAs: ImportedFile['readAs'] }

/** Which files of a ZIP may be CSV, and which are not read. */
export type Candidates = { csv: ZipEntry[]; ignored: IgnoredFile[] }

/** Files that are not read and are kept, so that people see them. */
const shownIgnored = 100

/**
 * Tells which files of a ZIP may be CSV: by the ends of their names. Throws `rule_violation` for an Excel workbook, and
 * where there is no such file or there are too many.
 */
export function findCandidates(entries: readonly ZipEntry[]): Candidates {
  const names = entries.map(({ name }) => name)
  if (names.includes('[Content_Types].xml')) {
    throw brokenRule('body', 'must be CSV, and this is an Excel workbook or a document: save the table as CSV')
  }
  const csv: ZipEntry[] = []
  const ignored: IgnoredFile[] = []
  for (const entry of entries) {
    const byName = leftOutByName(entry.name)
    if (byName !== null) ignored.push({ name: shown(entry.name), readAs: 'ignored', reason: byName })
    else csv.push(entry)
  }
  if (csv.length === 0) {
    throw brokenRule('body', `must have a CSV file with contacts in the ZIP; it has ${listed(names)}`)
  }
  if (csv.length > importLimits.zipFiles) {
    const message = `must have at most ${importLimits.zipFiles} CSV files in the ZIP; it has ${csv.length}: send those with contacts alone`
    throw brokenRule('body', message)
  }
  return { csv, ignored: ignored.slice(0, shownIgnored) }
}

/** The kinds of people in the files of an export from Mailchimp, by the beginning of the file name. */
const kindsByName = {
  subscribed: 'contacts',
  unsubscribed: 'unsubscribe',
  cleaned: 'hard_bounce',
  nonsubscribed: 'never',
  archived: 'never',
} as const

function kindByName(name: string): (typeof kindsByName)[keyof typeof kindsByName] | null {
  const base = name.slice(name.lastIndexOf('/') + 1).toLowerCase()
  const [word = ''] = /^[a-z]+(?![a-z])/.exec(base.replace(/^(un|non)-/, '$1')) ?? []
  return Object.hasOwn(kindsByName, word) ? kindsByName[word as keyof typeof kindsByName] : null
}

function leftOutByName(name: string): string | null {
  if (/\.(zip|gz|7z|rar|xlsx)$/i.test(name)) return 'it is an archive or a workbook: unpack it and send what is in it'
  if (!/\.(csv|tsv|txt)$/i.test(name)) return 'it is no CSV file'
  return kindByName(name) === 'never' ? 'people of such a file of Mailchimp have not subscribed' : null
}

/**
 * Decides what a CSV file is by its columns and its name. Returns why it is not read, as text. Throws `rule_violation`
 * for a file of people that has no column of addresses: to leave it out in silence could send to them.
 */
export function planFile(entry: ZipEntry, head: Head): ZipFilePlan | string {
  const byName = kindByName(entry.name)
  const isOfPeople = byName !== null || head.suppressesAs !== null
  if (!head.columns.some(({ field }) => field === 'email')) {
    if (!isOfPeople) return 'none of its columns has addresses'
    const names = head.columns.map(({ column }) => column)
    const message = `must say which column of ${shown(entry.name)} has the addresses, as columns[name]=email: none of the names is known (${names.slice(0, 10).join(', ').slice(0, 200)})`
    throw brokenRule('query.columns', message)
  }
  const named = byName === 'unsubscribe' || byName === 'hard_bounce' ? byName : null
  return { entry, head, readAs: head.suppressesAs ?? named ?? 'contacts' }
}

/**
 * Returns files in the order in which they are read: people who get no email first, so that none of them becomes a
 * contact by another file. Then files where a column may say so of some; who is in two of these may become one first.
 */
export function inReadingOrder(plans: readonly ZipFilePlan[]): ZipFilePlan[] {
  const rank = ({ readAs, head }: ZipFilePlan) => {
    if (readAs !== 'contacts') return 0
    return head.columns.some(({ field }) => field === 'status') ? 1 : 2
  }
  return plans.toSorted((one, other) => rank(one) - rank(other))
}

/** Throws `rule_violation` where nothing is to be read, too much is, or a mapped column is in no file. */
export function assertReadable(
  plans: readonly ZipFilePlan[],
  { ignored, mapping }: { ignored: readonly IgnoredFile[]; mapping: Readonly<Record<string, string>> },
): void {
  if (plans.length === 0) {
    const reasons = ignored.slice(0, 3).map(({ name, reason }) => `${name}: ${reason}`)
    throw brokenRule('body', `must have a CSV file with contacts in the ZIP (${reasons.join('; ')})`)
  }
  const columns = plans.flatMap(({ head }) => head.columns.map(({ column }) => column))
  if (columns.length > importLimits.zipColumns) {
    const message = `must have at most ${importLimits.zipColumns} columns in all files of the ZIP; it has ${columns.length}`
    throw brokenRule('body', message)
  }
  const seen = new Set(columns)
  const unknown = Object.keys(mapping).filter((name) => !seen.has(name))
  if (unknown.length > 0) {
    throw brokenRules(
      unknown.map((name) => ({
        path: `query.columns.${name}`,
        message: 'is no column of a file of the ZIP that is read',
      })),
    )
  }
}

/** Runs `work`, and names the file in what it throws. */
export async function ofFile<T>({ name }: ZipEntry, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof ZipFaultError) throw brokenRule('body', `${shown(name)} of the ZIP: ${error.message}`)
    if (!(error instanceof DomainError) || error.code !== 'rule_violation') throw error
    throw brokenRules(
      error.details.map(({ path, message }) => ({
        path,
        message: message.includes(shown(name)) ? message : `${message} (${shown(name)} of the ZIP)`,
      })),
    )
  }
}

function listed(names: readonly string[]): string {
  if (names.length === 0) return 'no file'
  const first = names.slice(0, 5).map((name) => JSON.stringify(shown(name).slice(0, 60)))
  return names.length > first.length ? `${first.join(', ')} and others` : first.join(', ')
}
