import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type CampaignStatus, campaignStatuses } from '../../contract/campaign-resource.ts'
import { type Move, moves, statusAfter, wrongState } from '../../server/campaigns/states.ts'

const all = Object.keys(moves) as Move[]

/** Every legal move, as docs/architecture/campaign-states.md draws them. */
const legal: readonly [CampaignStatus, Move, CampaignStatus][] = [
  ['draft', 'send', 'scheduled'],
  ['scheduled', 'start', 'sending'],
  ['scheduled', 'skip', 'canceled'],
  ['scheduled', 'cancel', 'canceled'],
  ['sending', 'pause', 'paused'],
  ['sending', 'stall', 'paused'],
  ['sending', 'cancel', 'canceled'],
  ['sending', 'complete', 'completed'],
  ['paused', 'resume', 'sending'],
  ['paused', 'cancel', 'canceled'],
]

describe.each(campaignStatuses)('a campaign that is %s', (status) => {
  test.each(all)('%s', (move) => {
    const found = legal.find(([from, how]) => from === status && how === move)
    expect(statusAfter(move, status)).toBe(found?.[2] ?? null)
  })
})

test('whatever is tried, a campaign that has ended stays as it is, and sending begins once', () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...all)), (tried) => {
      let status: CampaignStatus = 'draft'
      let starts = 0
      for (const move of tried) {
        const next = statusAfter(move, status)
        if (next === null) continue
        expect(['completed', 'canceled']).not.toContain(status)
        if (move === 'start') starts += 1
        status = next
      }
      expect(starts).toBeLessThanOrEqual(1)
      if (status === 'completed') expect(starts).toBe(1)
    }),
  )
})

test.each(campaignStatuses)('a refusal says that the campaign is %s, and what to do', (status) => {
  expect(wrongState('cmp_1', status, 'sent').message).toMatch(new RegExp(`is ${status} and cannot be sent\\. \\S+`))
})
