import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createSecureContext } from 'node:tls'
import { messageOf } from '../lib/error-codes.ts'
import { OperatorError } from '../shared/errors.ts'

/**
 * Reads the certificate chain and private key of a server from PEM files. Throws OperatorError with the name of the
 * setting when a file cannot be read or parsed, or when the key does not match the certificate.
 *
 * @param settings The names of the settings of the files.
 */
export async function readTlsFiles(
  { certFile, keyFile }: { certFile: string; keyFile: string },
  settings: { cert: string; key: string },
): Promise<{ cert: string; key: string }> {
  const cert = await contentOf(settings.cert, certFile)
  const key = await contentOf(settings.key, keyFile)
  const certificate = attempt(
    () => new X509Certificate(cert),
    `${settings.cert}: there is no certificate in ${certFile}`,
    'give a file with the certificate chain in PEM, that of the server first',
  )
  const privateKey = attempt(
    () => createPrivateKey(key),
    `${settings.key}: there is no private key that can be read in ${keyFile}`,
    'give a file with the private key in PEM, without a passphrase',
  )
  if (!certificate.checkPrivateKey(privateKey)) {
    throw new OperatorError(
      `${settings.key}: the key in ${keyFile} is not that of the certificate in ${certFile} (${settings.cert}); give the two that belong together`,
    )
  }
  attempt(
    () => createSecureContext({ cert, key }),
    `${settings.cert} and ${settings.key}: TLS cannot be had with ${certFile} and ${keyFile}`,
    'give a certificate chain and its key in PEM',
  )
  return { cert, key }
}

async function contentOf(setting: string, path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    throw new OperatorError(`${setting}: the file cannot be read (${messageOf(error)}); give a readable file`, {
      cause: error,
    })
  }
}

function attempt<T>(make: () => T, fault: string, remedy: string): T {
  try {
    return make()
  } catch (error) {
    throw new OperatorError(`${fault} (${messageOf(error)}); ${remedy}`, { cause: error })
  }
}
