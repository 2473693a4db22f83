import type { Input } from '../../api/client.ts'
import { bodyOfMarkup, type Markup, markupWritten } from '../../components/markup-field.tsx'
import type { CampaignDetails } from './campaign.ts'

/** A variant as it is written. Empty: as in the campaign. */
export type VariantValues = Markup & {
  /** Tells it from others while its name changes. */
  key: string
  name: string
  subject: string
  hasContent: boolean
  preheader: string
  text: string
}

/** An A/B test as it is written. */
export type AbTestValues = {
  isOn: boolean
  /** In percent. */
  share: string
  winnerBy: 'opens' | 'clicks' | 'manual'
  hours: string
  variants: VariantValues[]
}

/** As many variants as there may be. */
export const variantCounts = { min: 2, max: 5 }

/** Returns a new variant. `number`: from 0. */
export function newVariant(number: number): VariantValues {
  return { ...emptyVariant, key: crypto.randomUUID(), name: 'ABCDE'[number] ?? '' }
}

const emptyVariant = {
  subject: '',
  hasContent: false,
  preheader: '',
  format: 'html',
  html: '',
  mjml: '',
  text: '',
} as const

/** What an A/B test begins with: the message of the campaign, and one to compare it with. */
export const emptyAbTest: AbTestValues = {
  isOn: false,
  share: '20',
  winnerBy: 'opens',
  hours: '24',
  variants: ['A', 'B'].map((name) => ({ ...emptyVariant, key: name, name })),
}

export function abTestValuesOf(abTest: CampaignDetails['abTest']): AbTestValues {
  if (abTest === null) return emptyAbTest
  const { share, winnerBy, hours, variants } = abTest
  return {
    isOn: true,
    share: String(share),
    winnerBy,
    hours: hours === null ? emptyAbTest.hours : String(hours),
    variants: variants.map(({ name, subject, content }) => ({
      ...emptyVariant,
      key: name,
      name,
      subject: subject ?? '',
      hasContent: content !== null,
      ...(content && { preheader: content.preheader ?? '', ...markupWritten(content), text: content.text ?? '' }),
    })),
  }
}

/** Returns the test as the API takes it. Null: there is none. */
export function abTestBodyOf({ isOn, share, winnerBy, hours, variants }: AbTestValues) {
  if (!isOn) return null
  return {
    share: Number(share),
    winnerBy,
    ...(winnerBy !== 'manual' && { hours: Number(hours) }),
    variants: variants.map((variant) => ({
      name: variant.name,
      subject: orNull(variant.subject),
      content: variant.hasContent
        ? { preheader: orNull(variant.preheader), ...bodyOfMarkup(variant), text: orNull(variant.text) }
        : null,
    })),
  } satisfies Input<'POST /v1/campaigns'>['body']['abTest']
}

/** Returns what is wrong with the numbers of a test. Null: nothing. */
export function faultOfAbTest({ isOn, share, winnerBy, hours }: AbTestValues): string | null {
  if (!isOn) return null
  if (!isNumber(share, 100)) return 'The share must be a number from 1 to 100'
  if (winnerBy !== 'manual' && !isNumber(hours, 168)) return 'The hours must be a number from 1 to 168'
  return null
}

function isNumber(text: string, most: number): boolean {
  return /^\s*\d+\s*$/.test(text) && Number(text) >= 1 && Number(text) <= most
}

function orNull(text: string): string | null {
  return text === '' ? null : text
}
