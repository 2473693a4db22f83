import type { CampaignStatus } from '../../contract/campaign-resource.ts'
import { exampleId } from '../../contract/ids.ts'
import type { Db } from '../../server/database/connection.ts'
import type { Answer, TestClient } from '../support/client.ts'
import type { Fixtures } from '../support/fixtures.ts'
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

/** Tries to delete the audience of a campaign that has not ended. */
export async function deleteUsedAudience(
  client: TestClient,
  { fixtures, db }: { fixtures: Fixtures; db: Db },
): Promise<Answer> {
  const { id = '' } = await fixtures.parametersFor(operationById('getCampaign'))
  const { audience_id: audienceId } = await db
    .updateTable('campaigns')
    .set({ status: 'paused' })
    .where('id', '=', id)
    .returning('audience_id')
    .executeTakeFirstOrThrow()
  return client.send('DELETE', `/v1/audiences/${audienceId}`)
}
