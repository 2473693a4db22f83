import type { CampaignStatus } from '../../contract/campaign-resource.ts'
import { exampleId } from '../../contract/ids.ts'
import type { Db } from '../../server/database/connection.ts'
import type { Answer, TestClient } from '../support/client.ts'
import { type Fixtures, pathOf } from '../support/fixtures.ts'
import { operationById } from '../support/published-spec.ts'

/** An email to an audience that is not there. */
export const toNobody = {
  from: 'hello@example.com',
  to: 'ada@example.com',
  subject: 'Nobody is there',
  text: 'Hello',
  audienceId: exampleId('audience'),
}

/** How each operation of campaigns comes to be impossible, for every-status.test.ts. */
export function campaignCases(db: () => Db) {
  const set =
    (status: CampaignStatus) =>
    ({ id = '' }: Record<string, string>) =>
      db().updateTable('campaigns').set({ status }).where('id', '=', id).execute()
  const content = { from: 'hello@example.com', subject: 'Nobody is there', content: { text: 'Hello' } }
  return {
    createCampaign: { json: { name: 'To nobody', audienceId: exampleId('audience'), ...content } },
    updateCampaign: { forbid: set('sending'), json: { name: 'Too late' } },
    deleteCampaign: { forbid: set('sending') },
    sendCampaign: { forbid: set('sending'), json: {} },
    pauseCampaign: { forbid: set('draft'), json: {} },
    resumeCampaign: { forbid: set('draft'), json: {} },
    cancelCampaign: { forbid: set('draft'), json: {} },
    chooseCampaignWinner: { forbid: set('draft'), json: { variant: 'A' } },
    renderCampaign: { json: { subscriberId: exampleId('subscriber') } },
    testCampaign: { json: { to: ['ada@example.127'] } },
  }
}

/** Tries to delete what a campaign needs that has not ended. */
export async function deleteUsed(
  operationId: 'deleteAudience' | 'deleteSegment' | 'deleteTopic',
  client: TestClient,
  { fixtures, db }: { fixtures: Fixtures; db: Db },
): Promise<Answer> {
  const { id = '' } = await fixtures.parametersFor(operationById('getCampaign'))
  const needed = await fixtures.parametersFor(operationById(operationId))
  const change = {
    deleteAudience: { audience_id: needed.id ?? '' },
    deleteSegment: { segment_ids: [needed.id ?? ''] },
    deleteTopic: { topic_id: needed.id ?? '' },
  }[operationId]
  const paused = { status: 'paused' as const, ...change }
  await db.updateTable('campaigns').set(paused).where('id', '=', id).execute()
  const answer = await client.send('DELETE', pathOf(operationById(operationId), needed))
  // The fixtures delete topics when there are many.
  await db.updateTable('campaigns').set({ status: 'draft' }).where('id', '=', id).execute()
  return answer
}
