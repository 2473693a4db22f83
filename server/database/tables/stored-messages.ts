import type { Generated } from 'kysely'
import type { Mode } from '../../../contract/mode.ts'

/** Messages that the capture transport kept instead of sending. */
export type CapturedMessagesTable = {
  id: string
  /** Null: it belongs to no account, for example because its email is deleted. */
  account_id: string | null
  email_id: string | null
  /** The mode of its email. */
  mode: Generated<Mode>
  mail_from: string
  recipients: string[]
  content: Buffer
  created_at: Date
}

/** Messages that arrived at a return path and were not understood. */
export type InboundMessagesTable = {
  id: string
  account_id: string | null
  email_id: string | null
  /** The mode of its email. */
  mode: Generated<Mode>
  mail_from: string
  recipients: string[]
  /** Why it was kept. */
  reason: string
  content: Buffer
  created_at: Date
}
