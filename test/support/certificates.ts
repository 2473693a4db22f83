import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * A certificate that `tls/make.sh` makes. It is for hook.test, mx.receiver.test, mta-sts.receiver.test and 127.0.0.1,
 * except as its name says.
 */
export type CertificateName = 'valid' | 'expired' | 'other-name' | 'self-signed'

/** A certificate with its key, as a server takes it. */
export function certificate(name: CertificateName): { key: string; cert: string } {
  return { key: pem('key'), cert: pem(name) }
}

/** The certificate of the authority that issued all but the self-signed one. */
export function testAuthority(): string {
  return pem('authority')
}

function pem(name: string): string {
  return readFileSync(join(import.meta.dirname, 'tls', `${name}.pem`), 'utf8')
}
