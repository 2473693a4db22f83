import { expect, test } from 'vitest'
import { createRenderer } from '../../server/rendering/renderer.ts'
import { createCampaignWorld } from '../support/worlds/campaigns.ts'

test('a campaign whose content is changed while it is compiled is not sent', async () => {
  await using renderer = createRenderer()
  let id = ''
  await using changing = await createCampaignWorld({
    ...renderer,
    async faultOf(content) {
      const change = { content: { text: 'Changed {{ contact.email | nosuchfilter }}' } }
      await changing.campaigns.update(changing.db, changing.live, id, change)
      return renderer.faultOf(content)
    },
  })
  id = await changing.draft(await changing.addAudience(1))
  await expect(changing.campaigns.send(changing.db, changing.live, id, null)).rejects.toMatchObject({
    code: 'campaign_state',
    message: expect.stringContaining('was changed meanwhile'),
  })
  expect(await changing.campaigns.get(changing.db, changing.live, id)).toMatchObject({ status: 'draft' })
})
