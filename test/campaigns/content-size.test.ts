import { afterAll, afterEach, beforeEach, expect, test } from 'vitest'
import { campaignLimits, createCampaign, renderCampaign, updateCampaign } from '../../contract/campaign-resource.ts'
import { createRenderer } from '../../server/rendering/renderer.ts'
import { type CampaignWorld, createCampaignWorld } from '../support/worlds/campaigns.ts'

/* How large the content of a campaign may be: what can be stored can be sent. */

const renderer = createRenderer()
afterAll(() => renderer[Symbol.asyncDispose]())

let world: CampaignWorld
let audienceId: string
beforeEach(async () => {
  world = await createCampaignWorld(renderer)
  audienceId = await world.addAudience(1)
})
afterEach(() => world[Symbol.asyncDispose]())

const { contentLength, contentBytes } = campaignLimits
const written = (content: object) => ({ name: 'Large', audienceId, from: 'hello@shop.test', subject: 'Large', content })

test('content of the greatest length that a draft may have is sent', async () => {
  const { db, live, campaigns } = world
  const largest = { html: 'h'.repeat(contentLength), text: 't'.repeat(contentLength) }
  const { id } = await campaigns.create(db, live, createCampaign.parse(written(largest)))
  await world.start(id)
  await world.deliver()

  expect((await campaigns.get(db, live, id)).status).toBe('completed')
  expect(await world.statuses()).toEqual({ handed_over: 1 })
})

test.each(['html', 'text'])(
  '%s that is too long to be rendered is refused with the error of its field when a draft is written, changed or previewed',
  (field) => {
    const content = { [field]: 'x'.repeat(contentLength + 1) }
    const variants = [{ name: 'A' }, { name: 'B', content }]
    const refused = [
      createCampaign.safeParse(written(content)),
      updateCampaign.safeParse({ content }),
      renderCampaign.safeParse({ content }),
      updateCampaign.safeParse({ abTest: { share: 20, winnerBy: 'manual', variants } }),
    ]
    const told = refused.map(({ error }) => error?.issues.map(({ path, message }) => [path.join('.'), message]))
    const message = `must be at most ${contentLength} characters`
    expect(told).toEqual([
      [[`content.${field}`, message]],
      [[`content.${field}`, message]],
      [[`content.${field}`, message]],
      [[`abTest.variants.1.content.${field}`, message]],
    ])
  },
)

test('content of the greatest length is refused with the error of its field where it has too many bytes', async () => {
  const { db, live, campaigns } = world
  const body = createCampaign.parse(written({ text: 'ü'.repeat(contentLength) }))
  const told = { path: 'body.content.text', message: `must be at most ${contentBytes} bytes in UTF-8` }
  await expect(campaigns.create(db, live, body)).rejects.toMatchObject({ code: 'rule_violation', details: [told] })
})
