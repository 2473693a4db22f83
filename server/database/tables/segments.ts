import type { ColumnType } from 'kysely'
import type { SegmentCondition } from '../../../contract/segment-conditions.ts'

/** Conditions that choose contacts of an audience. */
export type SegmentsTable = {
  account_id: string
  id: string
  audience_id: string
  name: string
  conditions: ColumnType<SegmentCondition, string, string>
  created_at: Date
  updated_at: Date
}
