import { z } from 'zod'
import { propertyKey } from './contact-properties.ts'
import { list, text, tree } from './fields.ts'
import { exampleId, idSchema } from './ids.ts'
import {
  type ContactField,
  conditionLimits,
  contactFields,
  type Engagement,
  engagements,
  type Operator,
  operators,
  operatorsOf,
} from './segment-operators.ts'

/*
 * The conditions of a segment: a tree whose leaves compare. What an operator takes depends on the type of what it
 * compares, and the type of a property on the account, so the service checks it: see
 * server/segments/condition-faults.ts.
 */

/** The value a comparison is made with. */
export type ConditionValue = string | number | boolean

export type Comparison =
  | { type: 'property'; property: string; operator: Operator; value: ConditionValue }
  | { type: 'field'; field: ContactField; operator: Operator; value: ConditionValue }

export type EngagementCondition = {
  type: 'engagement'
  event: Engagement
  inLastDays?: number | undefined
  campaignId?: string | undefined
}

/** Whether a person gets a topic: what they chose, or else the default of the topic. */
export type TopicCondition = { type: 'topic'; topicId: string; subscribed: boolean }

export type SegmentCondition =
  | { type: 'and' | 'or'; conditions: SegmentCondition[] }
  | { type: 'not'; condition: SegmentCondition }
  | Comparison
  | EngagementCondition
  | TopicCondition

const { conditions: maxConditions, depth: maxDepth, days: maxDays, valueCharacters } = conditionLimits

const key = propertyKey.meta({ description: 'The key of a contact property of the account.', example: 'plan' })

function told([type, ofType]: readonly [string, readonly string[]]): string {
  return `For a ${type}: ${ofType.map((name) => `\`${name}\``).join(', ')}.`
}

const operator = z.enum(operators).meta({
  id: 'SegmentOperator',
  description: `How to compare. ${Object.entries(operatorsOf).map(told).join(' ')}`,
  example: 'is',
})

const value = z.union([text(valueCharacters).min(1), z.number().meta({ format: 'double' }), z.boolean()]).meta({
  description: `What to compare with, of the type that is compared: a text, a number, a boolean, a date (\`2026-03-01\`), a time (ISO 8601) or a status (\`active\`, \`unsubscribed\`, and \`pending\` of a contact). With \`exists\`: \`true\` or \`false\`. With \`in_last_days\`: a whole number of days from 1 to ${maxDays}.`,
  example: 'pro',
})

const groupMeaning = { and: 'All of the conditions hold.', or: 'At least one of the conditions holds.' }

function group<Type extends 'and' | 'or'>(type: Type, id: string) {
  return z
    .strictObject({
      type: z.literal(type),
      get conditions(): z.ZodType<SegmentCondition[]> {
        return list(condition, { min: 1, max: maxConditions, minFault: 'at least one condition is needed' })
      },
    })
    .meta({ id, description: groupMeaning[type], example: { type, conditions: [exampleCondition] } })
}

/** People whose property `plan` is `pro`. */
const exampleCondition = { type: 'property', property: 'plan', operator: 'is', value: 'pro' } as const

const not = z
  .strictObject({
    type: z.literal('not'),
    get condition(): z.ZodType<SegmentCondition> {
      return condition
    },
  })
  .meta({
    id: 'SegmentNot',
    description: 'The condition does not hold.',
    example: { type: 'not', condition: exampleCondition },
  })

const property = z.strictObject({ type: z.literal('property'), property: key, operator, value }).meta({
  id: 'SegmentProperty',
  description:
    'Compares a contact property. A person without a value of its type matches `is_not`, and `exists` with `false`; no other operator.',
  example: exampleCondition,
})

const field = z
  .strictObject({
    type: z.literal('field'),
    field: z.enum(Object.keys(contactFields) as [ContactField, ...ContactField[]]).meta({
      id: 'SegmentFieldName',
      description:
        'What every contact has. `status` is that of the contact in the audience, `subscriberStatus` that of the person, `createdAt` when the person was added to the audience.',
      example: 'emailDomain',
    }),
    operator,
    value,
  })
  .meta({
    id: 'SegmentField',
    description: 'Compares what every contact has. Addresses are compared in lower case, names as they are written.',
    example: { type: 'field', field: 'emailDomain', operator: 'is', value: 'example.com' },
  })

const engagement = z
  .strictObject({
    type: z.literal('engagement'),
    event: z.enum(engagements).meta({
      id: 'EngagementKind',
      description:
        'What happened to an email to the person. `sent`: a mail server took it. `received`: it was delivered. `opened`, `clicked`: for the first time, by a machine too.',
      example: 'opened',
    }),
    inLastDays: z.int().min(1).max(maxDays).optional().meta({
      description: 'Only in so many days before now, each of 24 hours. Default: as long as emails are kept.',
      example: 30,
    }),
    campaignId: idSchema('campaign', 'Only an email of this campaign.').optional(),
  })
  .meta({
    id: 'SegmentEngagement',
    description: 'It happened to an email to the address that the person has now. Emails of test keys do not count.',
    example: { type: 'engagement', event: 'opened', inLastDays: 30 },
  })

const topic = z
  .strictObject({
    type: z.literal('topic'),
    topicId: idSchema('topic', 'A topic of the account.'),
    subscribed: z.boolean().meta({ description: '`true`: people who get the topic. `false`: those who do not.' }),
  })
  .meta({
    id: 'SegmentTopic',
    description:
      'Whether the person gets the topic: what they chose, or else the default of the topic. A person who unsubscribed from everything keeps their topics.',
    example: { type: 'topic', topicId: exampleId('topic'), subscribed: true },
  })

const typeFault = 'must have a "type": "and", "or", "not", "property", "field", "engagement" or "topic"'

const condition = z
  .discriminatedUnion(
    'type',
    [group('and', 'SegmentAnd'), group('or', 'SegmentOr'), not, property, field, engagement, topic],
    {
      error: ({ code }) => (code === 'invalid_union' ? typeFault : undefined),
    },
  )
  .meta({
    id: 'SegmentCondition',
    description: 'A condition, or a group of them; `type` tells which.',
    example: exampleCondition,
  })

/** The conditions directly within a value, which may be anything. */
function childrenOf(given: unknown): readonly unknown[] {
  if (typeof given !== 'object' || given === null) return []
  const { conditions, condition: inner } = given as { conditions?: unknown; condition?: unknown }
  const isShort = Array.isArray(conditions) && conditions.length <= maxConditions
  return [...(isShort ? conditions : []), ...(inner === undefined ? [] : [inner])]
}

/** The whole tree of a segment. */
export const conditions = tree(condition, {
  maxNodes: maxConditions,
  maxDepth,
  fault: `must have at most ${maxConditions} conditions and groups, and at most ${maxDepth} of them within each other`,
  childrenOf,
})

/** For examples: people of a plan who opened something lately. */
export const exampleConditions: SegmentCondition = {
  type: 'and',
  conditions: [
    { type: 'field', field: 'emailDomain', operator: 'is', value: 'example.com' },
    { type: 'engagement', event: 'opened', inLastDays: 30 },
  ],
}
