import type { SecretBox } from '../secrets.ts'

/** The columns of a webhook that a rotation of its secret leaves behind. */
export type RotatedSecret = { previous_secret: Buffer | null; previous_secret_expires_at: Date | null }

/** The secret before the latest rotation while it still signs beside the new one; else null. */
export function previousSecretOf(row: RotatedSecret, secretBox: SecretBox, now: Date): string | null {
  if (row.previous_secret === null || row.previous_secret_expires_at === null) return null
  return row.previous_secret_expires_at.getTime() > now.getTime() ? secretBox.open(row.previous_secret) : null
}
