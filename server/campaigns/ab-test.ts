import { abTestLimits } from '../../contract/campaign-ab-test.ts'
import type { CreateCampaign } from '../../contract/campaign-resource.ts'
import type { Trx } from '../database/connection.ts'
import type { AbTest } from '../database/tables/campaigns.ts'
import type { EmailFault } from '../emails/validate-email.ts'
import { markupOf, noMarkup } from '../templates/mjml.ts'
import type { AccountRenderer } from '../templates/renderer-turns.ts'
import { faultsOfMarkup } from './message.ts'
import { type CampaignFields, type CampaignKey, type CampaignRow, updateCampaign } from './queries.ts'
import { contentOfTemplate, noTemplate, type VariantContent } from './variants.ts'

/*
 * A/B tests: docs/architecture/campaign-states.md#ab-tests. Variants are told apart by their numbers, from 0.
 */

/** A test as it was written, and what is wrong with it. `contents`: by variant; null: that of the campaign. */
export type WrittenAbTest = { test: AbTest; contents: (VariantContent | null)[]; faults: EmailFault[] }

/** Reads the test of a request, and compiles its MJML. */
export async function readAbTest(
  renderer: AccountRenderer,
  written: NonNullable<CreateCampaign['abTest']>,
): Promise<WrittenAbTest> {
  const contents: WrittenAbTest['contents'] = []
  const faults: EmailFault[] = []
  for (const [number, { content, templateId }] of written.variants.entries()) {
    const place = `body.${pathOf(number)}`
    if (content == null) {
      contents.push(templateId == null ? null : contentOfTemplate(templateId))
      continue
    }
    if (templateId != null) {
      faults.push({ path: `${place}.templateId`, message: 'must not be given beside content', isOfForm: false })
    }
    faults.push(...faultsOfMarkup(content, `${place}.content`))
    // It will not be stored: its MJML need not be compiled.
    if (faults.length > 0) continue
    const markup = await markupOf(renderer, content, { path: `${place}.content` })
    contents.push({
      ...noTemplate,
      preheader: content.preheader ?? null,
      ...markup(noMarkup),
      text: content.text ?? null,
      constants: content.fallbacks ?? null,
    })
  }
  const { share, winnerBy, hours } = written
  const usualHours = winnerBy === 'manual' ? null : abTestLimits.defaultHours
  const variants = written.variants.map(({ name, subject = null }) => ({ name, subject }))
  return { test: { share, winnerBy, hours: hours ?? usualHours, variants }, contents, faults }
}

/** Where a variant stands in a campaign. */
export function pathOf(number: number): string {
  return `abTest.variants[${number}]`
}

/** Returns what is wrong with a test by itself. Paths are those of the request. */
export function faultsOfAbTest({
  ab_test: test,
  track_opens: opens,
  track_clicks: clicks,
}: Pick<CampaignFields, 'ab_test' | 'track_opens' | 'track_clicks'>): EmailFault[] {
  if (test === null) return []
  const { winnerBy, hours, variants } = test
  const faults: [path: string, message: string][] = []
  if (winnerBy === 'opens' && !opens) faults.push(['winnerBy', 'needs trackOpens'])
  if (winnerBy === 'clicks' && !clicks) faults.push(['winnerBy', 'needs trackClicks'])
  if (winnerBy === 'manual' && hours !== null) faults.push(['hours', 'must not be given with winnerBy "manual"'])
  for (const [number, { name }] of variants.entries()) {
    if (variants.findIndex((other) => other.name === name) === number) continue
    faults.push([`variants[${number}].name`, 'must not be the name of another variant'])
  }
  return faults.map(([path, message]) => ({ path: `body.abTest.${path}`, message, isOfForm: false }))
}

/** Returns whether the people who get a variant have to be written to before all others. */
export function isTesting({ ab_test: test, ab_winner: winner }: Pick<CampaignRow, 'ab_test' | 'ab_winner'>): boolean {
  return test !== null && test.share < 100 && winner === null
}

/** The numbers of people that were counted for a variant. */
export type VariantFigures = { sent: number; opened: number; clicked: number }

/**
 * Returns the number of the best variant: the one with the highest rate of opens or clicks among the people it was sent
 * to. With equal rates, also when all are zero, it is the first of them with a recipient. A variant whose content
 * cannot be rendered has no recipients.
 */
export function winnerOf(figures: readonly VariantFigures[], by: 'opens' | 'clicks'): number {
  const didOf = ({ opened, clicked }: VariantFigures) => (by === 'opens' ? opened : clicked)
  let best = 0
  for (const [number, one] of figures.entries()) {
    const leader = figures[best] ?? one
    // Fractions are compared by multiplying crosswise, so that equals are equal.
    const [its, leads] = [didOf(one) * Math.max(1, leader.sent), didOf(leader) * Math.max(1, one.sent)]
    const isFirstSent = its === leads && leader.sent === 0 && one.sent > 0
    if (its > leads || isFirstSent) best = number
  }
  return best
}

/** Stores the winner of a locked campaign whose test is over: those who wait get it, from the first on. */
export function decide(trx: Trx, key: CampaignKey, { winner, at }: { winner: number; at: Date }): Promise<CampaignRow> {
  return updateCampaign(trx, key, { ab_winner: winner, ab_decided_at: at, handled_to: '', updated_at: at })
}
