import { randomBytes } from 'node:crypto'
import { link, readFile, unlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Db } from '../database/connection.ts'
import { type SecretBox, secretBox } from '../secrets/secret-box.ts'
import { OperatorError } from '../shared/errors.ts'
import type { Config } from './config.ts'

const keyBytes = 32
const settingName = 'encryption key fingerprint'

/** The key that was configured, or else the one beside the embedded database. */
export async function encryptionKeyOf({
  encryptionKey,
  database,
}: Pick<Config, 'encryptionKey' | 'database'>): Promise<Buffer> {
  if (encryptionKey !== null) return encryptionKey
  if (database.kind === 'external') throw new Error('the configuration lacks an encryption key')
  return keyOfDataDir(database.dataDir)
}

/**
 * The key kept beside the embedded database, readable by its owner only; made on first use.
 * Throws OperatorError when the file does not hold a key.
 */
async function keyOfDataDir(dataDir: string): Promise<Buffer> {
  const path = join(dataDir, 'encryption.key')
  const kept = await readKey(path)
  if (kept !== null) return kept
  // Written aside and linked into place: a crash leaves a whole key or none, and of two processes one wins.
  const aside = `${path}.${process.pid}`
  await writeFile(aside, `${randomBytes(keyBytes).toString('base64')}\n`, { mode: 0o600, flush: true })
  try {
    await link(aside, path)
  } catch (error) {
    if (!isErrno(error, 'EEXIST')) throw error
  } finally {
    await unlink(aside)
  }
  return (await readKey(path)) as Buffer
}

async function readKey(path: string): Promise<Buffer | null> {
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return null
    throw error
  }
  const key = Buffer.from(text.trim(), 'base64')
  if (key.length !== keyBytes) {
    throw new OperatorError(
      `${path} does not hold an encryption key (base64 of ${keyBytes} bytes): restore it from a backup`,
    )
  }
  return key
}

/**
 * Opens the secrets of a database with `key`, having made sure that it is the key they were sealed
 * with. Throws OperatorError when it is another one.
 */
export async function openSecretBox(db: Db, key: Buffer): Promise<SecretBox> {
  const box = secretBox(key)
  await db
    .insertInto('settings')
    .values({ name: settingName, value: box.fingerprint })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
  const { value } = await db
    .selectFrom('settings')
    .select('value')
    .where('name', '=', settingName)
    .executeTakeFirstOrThrow()
  if (value !== box.fingerprint) {
    throw new OperatorError(
      'the encryption key, ENCRYPTION_KEY or else encryption.key in DATA_DIR, is not the one this database was made with: bring the old one back, or the webhooks’ secrets cannot be read',
    )
  }
  return box
}

function isErrno(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code
}
