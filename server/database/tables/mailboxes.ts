import type { Generated } from 'kysely'
import type { Mode } from '../../../contract/mode.ts'

/** What the capture transport has kept instead of sending. */
export type CapturedMessagesTable = {
  id: string
  /** Null: nobody's, as that of an email which is gone. */
  account_id: string | null
  email_id: string | null
  /** That of its email. */
  mode: Generated<Mode>
  mail_from: string
  recipients: string[]
  content: Buffer
  created_at: Date
}

/** What came in at the return path and was not understood. */
export type InboundMessagesTable = {
  id: string
  account_id: string | null
  email_id: string | null
  /** That of its email. */
  mode: Generated<Mode>
  mail_from: string
  recipients: string[]
  /** Why it was kept. */
  reason: string
  content: Buffer
  created_at: Date
}
