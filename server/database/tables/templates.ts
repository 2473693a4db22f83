import type { ColumnType } from 'kysely'
import type { TemplateVariable } from '../../../contract/templates.ts'

type Variables = ColumnType<TemplateVariable[], string, string>

/** Templates with their drafts. Both modes share them. */
export type TemplatesTable = {
  account_id: string
  id: string
  name: string
  subject: string
  preheader: string | null
  /** As it is written, or as the MJML was compiled. Null: there is none, or the MJML has faults. */
  html: string | null
  mjml: string | null
  text: string | null
  variables: Variables
  /** Counts the changes of the draft. */
  revision: number
  /** The revision that was published last. Null: none. */
  published_revision: number | null
  published_version: number | null
  published_at: Date | null
  created_at: Date
  updated_at: Date
}

/** Published versions of templates. Rows are never updated. */
export type TemplateVersionsTable = {
  account_id: string
  template_id: string
  version: number
  subject: string
  preheader: string | null
  html: string | null
  text: string | null
  variables: Variables
  published_at: Date
}
