import { type DelimiterName, importLimits } from '../../contract/import-files.ts'
import type { CreateImport } from '../../contract/imports.ts'
import type { Mode } from '../../contract/mode.ts'
import type { Db } from '../database/connection.ts'
import type { ImportedFile } from '../database/tables/imports.ts'
import type { Clock } from '../lib/clock.ts'
import { brokenRule, DomainError } from '../shared/errors.ts'
import { createUploadDecoder } from './decode-upload.ts'
import type { ImportKey, StoredFile } from './queries.ts'
import { readHead } from './read-head.ts'
import { beginningOf, inUtf8, storeFile } from './store-upload.ts'
import { readStoredZip } from './stored-zip.ts'
import { assertUnpackable, unpackEntry, unpackedTooLarge } from './unpack-entry.ts'
import { readDirectory, shown, type ZipBytes, type ZipEntry, ZipFaultError } from './zip-directory.ts'
import { assertReadable, findCandidates, inReadingOrder, ofFile, planFile, type ZipFilePlan } from './zip-files.ts'

export type ZipImport = {
  mode: Mode
  options: Pick<CreateImport, 'columns' | 'delimiter' | 'encoding'>
  /** The keys of the declared properties. */
  propertyKeys: readonly string[]
  /** Of the stored ZIP. */
  size: number
}

/**
 * Unpacks the CSV files of a stored ZIP into the file of its import, one behind the other and each without its head. Returns
 * what they are.
 *
 * Throws `rule_violation` where the ZIP cannot be read, has nothing to read, or has people who get no email and the key
 * is a test key; `payload_too_large` beyond 1 GiB of all files; and `conflict` when the import is canceled meanwhile.
 */
export async function storeZipFiles(
  means: { db: Db; clock: Clock },
  key: ImportKey,
  { mode, options, propertyKeys, size }: ZipImport,
): Promise<StoredFile> {
  const { columns: mapping = {} } = options
  const zip = readStoredZip(means.db, key, size)
  const { csv, ignored } = findCandidates(await orRefuse(() => readDirectory(zip)))
  const plans: ZipFilePlan[] = []
  for (const entry of csv) {
    const plan = await ofFile(entry, () => planEntry(zip, entry, { options, propertyKeys }))
    if (typeof plan === 'string') ignored.push({ name: shown(entry.name), readAs: 'ignored', reason: plan })
    else plans.push(plan)
  }
  assertReadable(plans, { ignored, mapping })
  if (mode === 'test' && plans.some(({ readAs }) => readAs !== 'contacts')) throw liveKeyForZip()

  await orRefuse(() =>
    assertUnpackable(
      size,
      plans.map(({ entry }) => entry),
    ),
  )
  const files: ImportedFile[] = []
  for (const plan of inReadingOrder(plans)) {
    const begin = files.at(-1)?.end ?? 0
    files.push(await ofFile(plan.entry, () => storeEntry(means, key, { zip, plan, options, begin })))
  }
  const [first] = files.toSorted(
    (one, other) => Number(one.readAs !== 'contacts') - Number(other.readAs !== 'contacts'),
  )
  const { delimiter = 'comma', encoding = 'utf-8', columns = [] } = first ?? {}
  return { delimiter, encoding, columns, files: [...files, ...ignored] }
}

/** Reads the head of a file of a ZIP. Returns why it is not read, as text. */
async function planEntry(
  zip: ZipBytes,
  entry: ZipEntry,
  { options, propertyKeys }: Pick<ZipImport, 'options' | 'propertyKeys'>,
): Promise<ZipFilePlan | string> {
  const text = inUtf8(unpackEntry(zip, entry), createUploadDecoder(options.encoding))
  try {
    const beginning = (await beginningOf(text)).toString()
    if (beginning.trim() === '') return 'it is empty'
    if (beginning.startsWith('PK\u0003\u0004'))
      return 'it is an archive or a workbook: unpack it and send what is in it'
    const { delimiter, columns: mapping } = options
    return planFile(entry, readHead(beginning, { delimiter, mapping, propertyKeys, isOneOfSeveral: true }))
  } catch (error) {
    // Archives have notes beside their files, which need no head.
    if (!/\.txt$/i.test(entry.name) || !(error instanceof DomainError) || error.code !== 'rule_violation') throw error
    return 'it is no CSV file'
  } finally {
    await text.return(undefined)
  }
}

type Unpacking = {
  zip: ZipBytes
  plan: ZipFilePlan
  options: ZipImport['options']
  /** Where its first row begins in the import. */
  begin: number
}

async function storeEntry(
  means: { db: Db; clock: Clock },
  key: ImportKey,
  { zip, plan: { entry, head, readAs }, options, begin }: Unpacking,
): Promise<ImportedFile> {
  const decoder = createUploadDecoder(options.encoding)
  const text = inUtf8(unpackEntry(zip, entry), decoder)
  try {
    const first = (await beginningOf(text)).subarray(head.bytes)
    const end = await storeFile(means, key, { first, rest: notBeyond(importLimits.fileBytes - begin, text), begin })
    const delimiter: DelimiterName = head.delimiter
    // The encoding may have turned out to be another one on the way.
    return { name: shown(entry.name), readAs, delimiter, encoding: decoder.encoding, columns: head.columns, begin, end }
  } finally {
    await text.return(undefined)
  }
}

/** Yields text of at most so many bytes. Other encodings grow in UTF-8. */
async function* notBeyond(limit: number, text: AsyncGenerator<Buffer>): AsyncGenerator<Buffer> {
  let size = 0
  for await (const bytes of text) {
    size += bytes.length
    if (size > limit) throw unpackedTooLarge()
    yield bytes
  }
}

async function orRefuse<T>(work: () => T | Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof ZipFaultError)) throw error
    throw brokenRule('body', `must be a ZIP that can be read: ${error.message}`)
  }
}

function liveKeyForZip(): DomainError {
  const message =
    'has files of people who unsubscribed or whose addresses bounced, and a test key puts nobody on the suppression list: use a live key, or send the file of the others alone'
  return brokenRule('body', message)
}
