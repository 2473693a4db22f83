import { randomBytes } from 'node:crypto'
import { link, readFile, unlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Db } from '../database/connection.ts'
import { hasCode } from '../lib/error-codes.ts'
import { type SecretBox, secretBox } from '../secrets/secret-box.ts'
import { OperatorError } from '../shared/errors.ts'
import type { Config } from './config.ts'

const keyBytes = 32
const settingName = 'encryption key fingerprint'

/** Returns the configured key, or the one in the data directory of the embedded database. */
export async function encryptionKeyOf({
  encryptionKey,
  database,
}: Pick<Config, 'encryptionKey' | 'database'>): Promise<Buffer> {
  if (encryptionKey !== null) return encryptionKey
  if (database.kind === 'external') throw new Error('the configuration lacks an encryption key')
  return keyOfDataDir(database.dataDir)
}

/**
 * Returns the key in the data directory, and creates it on first use, readable by its owner only. Throws OperatorError
 * when the file does not hold a key.
 */
async function keyOfDataDir(dataDir: string): Promise<Buffer> {
  const path = join(dataDir, 'encryption.key')
  const kept = await readKey(path)
  if (kept !== null) return kept
  // Written to a temporary file and linked: a crash leaves a whole key or none, and one of two processes wins.
  const temporaryPath = `${path}.${process.pid}`
  await writeFile(temporaryPath, `${randomBytes(keyBytes).toString('base64')}\n`, { mode: 0o600, flush: true })
  try {
    await link(temporaryPath, path)
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw error
  } finally {
    await unlink(temporaryPath)
  }
  return (await readKey(path)) as Buffer
}

async function readKey(path: string): Promise<Buffer | null> {
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return null
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
 * Returns a SecretBox with `key`, after checking that the secrets of the database were sealed with it. Throws
 * OperatorError when they were sealed with another key.
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
