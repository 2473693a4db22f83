import type { Input } from '../../api/client.ts'
import { bodyOfMarkup, type Markup, markupWritten } from '../../components/markup-field.tsx'
import type { CampaignDetails } from './campaign.ts'

/** A variant as it is written. Empty: as in the campaign. */
export type VariantValues = Markup & {
  /** Tells it from others while its name changes. */
  key: string
  name: string
  subject: string
  /** Whose message it is. */
  source: 'campaign' | 'own' | 'template'
  templateId: string
  preheader: string
  text: string
  /** Values that the content has where the campaign gives none. They are not changed here. */
  fallbacks: CampaignDetails['content']['fallbacks']
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
  source: 'campaign',
  templateId: '',
  preheader: '',
  format: 'html',
  html: '',
  mjml: '',
  text: '',
  fallbacks: null,
} as const

/** The initial values of an A/B test: the message of the campaign, and a variant to compare it with. */
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
    variants: variants.map(({ name, subject, content, templateId }) => ({
      ...emptyVariant,
      key: name,
      name,
      subject: subject ?? '',
      ...(content !== null && { source: 'own' as const }),
      ...(templateId !== null && { source: 'template' as const, templateId }),
      ...(content && {
        preheader: content.preheader ?? '',
        ...markupWritten(content),
        text: content.text ?? '',
        fallbacks: content.fallbacks,
      }),
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
      content:
        variant.source === 'own'
          ? {
              preheader: orNull(variant.preheader),
              ...bodyOfMarkup(variant),
              text: orNull(variant.text),
              fallbacks: variant.fallbacks,
            }
          : null,
      templateId: variant.source === 'template' ? variant.templateId : null,
    })),
  } satisfies Input<'POST /v1/campaigns'>['body']['abTest']
}

/** Returns what is wrong with a test without asking the API, by the path of the field. */
export function faultsOfAbTest({ isOn, share, winnerBy, hours, variants }: AbTestValues): Record<string, string> {
  const faults: Record<string, string> = {}
  if (!isOn) return faults
  if (!isNumber(share, 100)) faults['abTest.share'] = 'Must be a number from 1 to 100'
  if (winnerBy !== 'manual' && !isNumber(hours, 168)) faults['abTest.hours'] = 'Must be a number from 1 to 168'
  for (const [number, { source, templateId }] of variants.entries()) {
    if (source === 'template' && templateId === '') faults[`${pathOf(number)}.templateId`] = 'Choose a template'
  }
  return faults
}

/** Returns where a variant stands in the body of a request. `number`: from 0. */
export function pathOf(number: number): string {
  return `abTest.variants[${number}]`
}

type Errors = Readonly<Record<string, unknown>>

/** Returns the faults that belong to no field of a test that is shown, as text. */
export function otherFaultsOf({ winnerBy, variants }: AbTestValues, errors: Errors): string[] {
  const shown = new Set([
    'abTest.share',
    'abTest.winnerBy',
    ...(winnerBy === 'manual' ? [] : ['abTest.hours']),
    ...variants.flatMap((variant, number) => shownFieldsOf(variant).map((field) => `${pathOf(number)}.${field}`)),
  ])
  return Object.entries(errors).flatMap(([path, error]) =>
    isInTest(path) && !shown.has(path) && typeof error === 'string' ? [error] : [],
  )
}

function shownFieldsOf({ source, format }: VariantValues): string[] {
  const own = ['content', `content.${format}`, 'content.preheader', 'content.text']
  return ['name', 'subject', ...(source === 'own' ? own : []), ...(source === 'template' ? ['templateId'] : [])]
}

function isInTest(path: string): boolean {
  return /^abTest(?:[.[]|$)/.test(path)
}

/** Returns the faults without those of a test that may be gone after a change: those of the fields that changed. */
export function faultsAfter<Faults extends Errors>(errors: Faults, before: AbTestValues, after: AbTestValues): Faults {
  const isSameList = before.variants.length === after.variants.length
  const gone = (path: string) => {
    const [, field = '', number, inner] = /^abTest\.(\w+)(?:\[(\d+)\])?(?:\.(.+))?$/.exec(path) ?? []
    if (field !== 'variants') return before[field as keyof AbTestValues] !== after[field as keyof AbTestValues]
    const [was, is] = [before.variants[Number(number)], after.variants[Number(number)]]
    if (!isSameList || was === undefined || is === undefined || inner === undefined) return true
    // A fault of the content may lie in any part of it.
    return inner === 'name' || inner === 'subject' ? was[inner] !== is[inner] : was !== is
  }
  const kept = Object.entries(errors).filter(([path]) => !isInTest(path) || !gone(path))
  return Object.fromEntries(kept) as Faults
}

function isNumber(text: string, most: number): boolean {
  return /^\s*\d+\s*$/.test(text) && Number(text) >= 1 && Number(text) <= most
}

function orNull(text: string): string | null {
  return text === '' ? null : text
}
