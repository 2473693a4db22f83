import type { RowOf } from '../../api/hooks.ts'

export type Topic = RowOf<'GET /v1/topics'>

/** What a default means for people who chose nothing. */
export const defaultLabels: Record<Topic['default'], { short: string; long: string }> = {
  opt_out: { short: 'Everybody', long: 'Everybody gets it, until they leave' },
  opt_in: { short: 'Who has joined', long: 'Nobody gets it, until they join' },
}
