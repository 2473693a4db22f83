import { generateKeyPairSync } from 'node:crypto'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { OperatorError } from '../../server/shared/errors.ts'
import { readTlsFiles } from '../../server/smtp-listener/tls-files.ts'

const certificates = join(import.meta.dirname, '..', 'support', 'tls')
const certFile = join(certificates, 'valid.pem')
const keyFile = join(certificates, 'key.pem')
const settings = { cert: 'THE_CERT', key: 'THE_KEY' }

let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'postern-tls-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

async function file(content: string): Promise<string> {
  const path = join(folder, 'file.pem')
  await writeFile(path, content)
  return path
}

async function faultOf(files: { certFile: string; keyFile: string }): Promise<string> {
  const error = await readTlsFiles(files, settings).catch((thrown: unknown) => thrown)
  expect(error).toBeInstanceOf(OperatorError)
  const { message } = error as OperatorError
  expect(message).not.toMatch(/\n|PRIVATE KEY-/)
  return message
}

test('a certificate and its key are read', async () => {
  const read = { cert: await readFile(certFile, 'utf8'), key: await readFile(keyFile, 'utf8') }
  expect(await readTlsFiles({ certFile, keyFile }, settings)).toEqual(read)
})

test('a file that is not there, or is none, is told of by its setting', async () => {
  expect(await faultOf({ certFile: '/nowhere.pem', keyFile })).toMatch(/^THE_CERT: the file cannot be read \(.*ENOENT/)
  expect(await faultOf({ certFile, keyFile: folder })).toMatch(/^THE_KEY: the file cannot be read \(.*EISDIR/)
})

test('a file that is no certificate, or no key, is told of by its setting', async () => {
  const text = await file('# Postern\n')
  expect(await faultOf({ certFile: text, keyFile })).toMatch(
    /^THE_CERT: there is no certificate in .*; give a file with/,
  )
  expect(await faultOf({ certFile, keyFile: text })).toMatch(/^THE_KEY: there is no private key .*; give a file with/)
  expect(await faultOf({ certFile: keyFile, keyFile: certFile })).toMatch(/^THE_CERT: /)
})

test('a key with a passphrase cannot be read', async () => {
  const { privateKey } = generateKeyPairSync('ed25519')
  const locked = privateKey.export({ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'hush' })
  expect(await faultOf({ certFile, keyFile: await file(String(locked)) })).toMatch(/^THE_KEY: .* without a passphrase$/)
})

test('the key of another certificate is refused', async () => {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const other = await file(String(privateKey.export({ type: 'pkcs8', format: 'pem' })))
  expect(await faultOf({ certFile, keyFile: other })).toMatch(/^THE_KEY: the key in .* \(THE_CERT\); give the two/)
})

test('a chain that breaks off behind the first certificate is refused', async () => {
  const chain = `${await readFile(certFile, 'utf8')}-----BEGIN CERTIFICATE-----\nbroken\n-----END CERTIFICATE-----\n`
  expect(await faultOf({ certFile: await file(chain), keyFile })).toMatch(/^THE_CERT and THE_KEY: TLS cannot be had/)
})
