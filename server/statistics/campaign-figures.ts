import type { Handle } from '../database/connection.ts'
import type { Scope } from '../shared/scope.ts'
import { type Figures, selectSeries, type TimeRange } from './queries.ts'

/** Figures of the emails of a campaign. */
export type CampaignFigures = Figures

/** Returns the figures of a campaign, of each day and of each hour in which something was counted. */
export async function figuresOfCampaign(
  handle: Handle,
  scope: Scope,
  { id, ...range }: TimeRange & { id: string },
): Promise<{ days: CampaignFigures[]; hours: (CampaignFigures & { start: Date })[] }> {
  const about = { scope, kind: 'campaign', key: id, ...range } as const
  return {
    days: await selectSeries(handle, { ...about, step: 'day' }),
    hours: await selectSeries(handle, { ...about, step: 'hour' }),
  }
}
