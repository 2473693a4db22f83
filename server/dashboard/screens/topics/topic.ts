import type { RowOf } from '../../api/hooks.ts'

export type Topic = RowOf<'GET /v1/topics'>

/** The labels of the defaults of a topic. A default applies to people who chose nothing. */
export const defaultLabels: Record<Topic['default'], { short: string; long: string }> = {
  opt_out: { short: 'Everybody', long: 'Everybody gets it, until they leave' },
  opt_in: { short: 'Who has joined', long: 'Nobody gets it, until they join' },
}
