import type { SegmentCondition } from '../../../contract/segment-conditions.ts'
import type { Random } from './seeded-random.ts'

/** The features of a campaign under test beside its audience. All of them go together. */
export type CampaignFeatures = {
  /** It goes to segments of the audience that overlap. */
  hasSegments: boolean
  /** Null: it is about no topic. */
  topic: 'opt_in' | 'opt_out' | null
  /** Its message is a stored template, which fails for some people. */
  hasTemplate: boolean
  /** It is throttled to `throttlePerHour`, so that the worker gives it many turns. */
  isThrottled: boolean
  /** It tests two variants. */
  hasVariants: boolean
}

export const noFeatures: CampaignFeatures = {
  hasSegments: false,
  topic: null,
  hasTemplate: false,
  isThrottled: false,
  hasVariants: false,
}

/** Returns all features at once. */
export function everyFeature(random: Random): CampaignFeatures {
  const topic = random.pick(['opt_in', 'opt_out'] as const)
  return { hasSegments: true, topic, hasTemplate: true, isThrottled: true, hasVariants: true }
}

/** Returns some features, at least one. */
export function pickFeatures(random: Random): CampaignFeatures {
  const isThere = () => random.int(2) === 1
  const all = everyFeature(random)
  const some: CampaignFeatures = {
    hasSegments: isThere(),
    topic: isThere() ? all.topic : null,
    hasTemplate: isThere(),
    isThrottled: isThere(),
    hasVariants: isThere(),
  }
  const isPlain = JSON.stringify(some) === JSON.stringify(noFeatures)
  return isPlain ? all : some
}

/** Messages an hour of a throttle: a slot of 50 ms for each, and those of two seconds at once. */
export const throttlePerHour = 72_000

/** How many hours an A/B test waits for its winner. */
export const abTestHours = 1

/** Returns a test of two variants. `templateId`: the template of the second; null: it has content of its own. */
export function abTestOf(templateId: string | null) {
  const second = templateId === null ? { content: { text: textOf(1) } } : { templateId }
  return {
    share: 50,
    winnerBy: 'opens',
    hours: abTestHours,
    variants: [
      { name: '0', content: { text: textOf(0) } },
      { name: '1', ...second },
    ],
  }
}

/** Where the message to a person is from: the campaign itself, its template, or the variant with a number. */
export type Source = 'campaign' | 'template' | number

/** Returns the first words of a message, which tell its source. */
export function beginningOf(source: Source): string {
  if (typeof source === 'number') return `Variant ${source} for `
  return source === 'template' ? 'Version 1 for ' : 'Hello '
}

export function textOf(source: Source): string {
  return `${beginningOf(source)}{{ contact.firstName }}, leave at {{ unsubscribeUrl }}`
}

/** The last name of people for whom templates fail: the subject is empty. */
const nameless = 'Nameless'

/** The subject of an email is its mark: see mail-verdict.ts. */
export const ownSubject = '{{ contact.email }}'
export const templateSubject = `{% if contact.lastName != "${nameless}" %}${ownSubject}{% endif %}`

/** The number property by which segments choose. */
export const tierProperty = { key: 'tier', type: 'number' }

const firstNames = ['Ada', 'Bob', 'Eve'] as const
const tiers = 4
/** One person of so many had unsubscribed, is suppressed, has chosen against a topic, or has no name that is needed. */
const unsubscribedEvery = 16
const suppressedEvery = 25
const topicEvery = 7
const namelessEvery = 11

/** Facts about a person of a campaign before it is sent. */
export type PersonFacts = {
  firstName: string
  lastName: string
  tier: number
  hasUnsubscribed: boolean
  isSuppressed: boolean
  getsTopic: boolean
}

/** Returns the facts about the person with a place in the audience, from 0. */
export function factsOf(place: number): PersonFacts {
  return {
    firstName: firstNames[place % firstNames.length] ?? firstNames[0],
    lastName: place % namelessEvery === 5 ? nameless : 'Lovelace',
    tier: place % tiers,
    hasUnsubscribed: place % unsubscribedEvery === 1,
    isSuppressed: place % suppressedEvery === 2,
    getsTopic: place % topicEvery !== 4,
  }
}

/** The facts that take a person out of all segments. */
export const outsideSegments = { firstName: 'Eve', tier: 0 }

type Segment = { conditions: SegmentCondition; has: (person: Pick<PersonFacts, 'firstName' | 'tier'>) => boolean }

const tierIs = (value: number): SegmentCondition => ({ type: 'property', property: 'tier', operator: 'is', value })
const firstNameIs = (value: string): SegmentCondition => ({ type: 'field', field: 'firstName', operator: 'is', value })

/** Segments that overlap. A quarter of the people is in none of them. */
export const segments: readonly Segment[] = [
  { conditions: firstNameIs('Ada'), has: ({ firstName }) => firstName === 'Ada' },
  {
    conditions: { type: 'property', property: 'tier', operator: 'at_least', value: 2 },
    has: ({ tier }) => tier >= 2,
  },
  {
    conditions: { type: 'and', conditions: [firstNameIs('Bob'), { type: 'not', condition: tierIs(0) }] },
    has: ({ firstName, tier }) => firstName === 'Bob' && tier !== 0,
  },
]

/** Conditions that no person matches. */
export const nobody = firstNameIs('Nobody')

/** How a campaign ends for a person, as its list of recipients shows it: a status, or why the person was skipped. */
export type Outcome = 'handed_over' | 'failed' | 'unsubscribed' | 'suppressed' | 'not listed'

/** Returns how a campaign ends for a person who stays as they are. Null: they get nothing, for more than one reason. */
export function outcomeOf(person: PersonFacts, features: CampaignFeatures): Outcome | null {
  const isOutside = features.hasSegments && !segments.some((segment) => segment.has(person))
  if (person.hasUnsubscribed || isOutside) return 'not listed'
  const reasons: Outcome[] = []
  if (features.hasTemplate && person.lastName === nameless) reasons.push('failed')
  if (features.topic !== null && !person.getsTopic) reasons.push('unsubscribed')
  if (person.isSuppressed) reasons.push('suppressed')
  if (reasons.length > 1) return null
  return reasons[0] ?? 'handed_over'
}
