import { ActionIcon, NativeSelect, TextInput } from '@mantine/core'
import { IconX } from '@tabler/icons-react'
import {
  type Comparable,
  type ContactField,
  conditionLimits,
  type Engagement,
} from '../../../../contract/segment-operators.ts'
import { engagementLabels, fieldLabels, operatorOptions } from './condition-labels.ts'
import {
  isEngagement,
  isTopic,
  type Leaf,
  needsValue,
  type Part,
  partsOf,
  subjects,
  type Types,
  typeOf,
} from './condition-tree.ts'

export type Campaign = { id: string; name: string }

export type Topic = { id: string; name: string }

type Props = {
  leaf: Leaf
  types: Types
  /** Those whose emails engagement can be limited to. */
  campaigns: readonly Campaign[]
  /** All of the account. Undefined: not read, or the reader may not see them. */
  topics: readonly Topic[] | undefined
  faults: Partial<Record<Part, string>>
  /** The message about what is missing. Null: nothing is missing, or the reader has not asked to save yet. */
  missing: string | null
  onChange: (leaf: Leaf) => void
  /** Undefined: the reader may not change anything. */
  onRemove: (() => void) | undefined
}

/** One condition: what is compared, how, and with what. */
export function ConditionRow({ leaf, types, campaigns, topics, faults, missing, onChange, onRemove }: Props) {
  const type = typeOf(leaf, types)
  const options = operatorOptions(leaf, type)
  const isKnown = options.some(({ value }) => value === leaf.operator)
  return (
    <div className="condition">
      <NativeSelect
        aria-label="What is compared"
        value={leaf.subject}
        onChange={(event) => onChange(withSubject(leaf, event.currentTarget.value, types))}
        data={subjectOptions(leaf, types, topics)}
        error={faults.subject}
      />
      <NativeSelect
        aria-label="How it is compared"
        value={leaf.operator}
        onChange={(event) => onChange(withOperator(leaf, event.currentTarget.value as Leaf['operator'], type))}
        data={isKnown ? options : [...options, { value: leaf.operator, label: leaf.operator }]}
        error={faults.operator}
      />
      <div className="condition-values">
        <ValueInput leaf={leaf} type={type} error={faults.value ?? missing ?? undefined} onChange={onChange} />
        {isEngagement(leaf) && (campaigns.length > 0 || leaf.campaignId !== '') && (
          <NativeSelect
            aria-label="Of which campaign"
            value={leaf.campaignId}
            onChange={(event) => onChange({ ...leaf, campaignId: event.currentTarget.value })}
            data={campaignOptions(campaigns, leaf.campaignId)}
          />
        )}
      </div>
      {onRemove !== undefined && (
        <ActionIcon variant="subtle" color="gray" size="lg" aria-label="Remove the condition" onClick={onRemove}>
          <IconX size={16} aria-hidden />
        </ActionIcon>
      )}
      {faults.whole !== undefined && <p className="condition-fault">{faults.whole}</p>}
    </div>
  )
}

function subjectOptions(leaf: Leaf, types: Types, topics: readonly Topic[] | undefined) {
  const keys = [...types.keys()]
  const [kind, name] = partsOf(leaf.subject)
  const isGone = kind === 'property' && !types.has(name)
  const properties = [
    ...keys.map((key) => ({ value: `property.${key}`, label: key })),
    ...(isGone ? [{ value: leaf.subject, label: `${name} (deleted)` }] : []),
  ]
  return [
    {
      group: 'Everybody has',
      items: subjects.fields.map((value) => ({ value, label: fieldLabels[partsOf(value)[1] as ContactField] })),
    },
    ...(properties.length === 0 ? [] : [{ group: 'Properties', items: properties }]),
    ...topicOptions(leaf, topics),
    {
      group: 'What happened',
      items: subjects.engagements.map((value) => ({
        value,
        label: engagementLabels[partsOf(value)[1] as Engagement],
      })),
    },
  ]
}

function topicOptions(leaf: Leaf, topics: readonly Topic[] | undefined) {
  const known = topics ?? []
  const [, id] = partsOf(leaf.subject)
  const isOther = isTopic(leaf) && !known.some((topic) => topic.id === id)
  const items = [
    ...known.map((topic) => ({ value: `topic.${topic.id}`, label: topic.name })),
    ...(isOther ? [{ value: leaf.subject, label: topics === undefined ? id : `${id} (deleted)` }] : []),
  ]
  return items.length === 0 ? [] : [{ group: 'Topics', items }]
}

function campaignOptions(campaigns: readonly Campaign[], chosen: string) {
  const isOther = chosen !== '' && !campaigns.some(({ id }) => id === chosen)
  return [
    { value: '', label: 'Of any email' },
    ...campaigns.map(({ id, name }) => ({ value: id, label: `Of ${name}` })),
    ...(isOther ? [{ value: chosen, label: `Of ${chosen}` }] : []),
  ]
}

/** The initial value for a type. Default: empty. */
const firstValues: Partial<Record<Comparable, string>> = { boolean: 'true', status: 'active' }

/** Of another type, neither the operator nor the value fits. */
function withSubject(leaf: Leaf, subject: string, types: Types): Leaf {
  const next = { ...leaf, subject, campaignId: '' }
  const type = typeOf(next, types)
  const isOfKind = isEngagement(next) === isEngagement(leaf) && isTopic(next) === isTopic(leaf)
  if (type === typeOf(leaf, types) && isOfKind) return next
  const operator = operatorOptions(next, type)[0]?.value ?? leaf.operator
  return { ...next, operator, value: firstValueOf(operator, type) }
}

function withOperator(leaf: Leaf, operator: Leaf['operator'], type: Comparable | undefined): Leaf {
  const isOtherKind = (operator === 'in_last_days') !== (leaf.operator === 'in_last_days')
  const isEmpty = leaf.value === ''
  return { ...leaf, operator, value: isOtherKind || isEmpty ? firstValueOf(operator, type) : leaf.value }
}

function firstValueOf(operator: Leaf['operator'], type: Comparable | undefined): string {
  if (operator === 'in_last_days') return '30'
  return type === undefined ? '' : (firstValues[type] ?? '')
}

type ValueProps = {
  leaf: Leaf
  type: Comparable | undefined
  error: string | undefined
  onChange: (leaf: Leaf) => void
}

const choices: Partial<Record<Comparable, readonly { value: string; label: string }[]>> = {
  boolean: [
    { value: 'true', label: 'Yes' },
    { value: 'false', label: 'No' },
  ],
  status: [
    { value: 'active', label: 'Active' },
    { value: 'unsubscribed', label: 'Unsubscribed' },
    { value: 'pending', label: 'Pending' },
  ],
}

const inputTypes: Partial<Record<Comparable, string>> = { number: 'number', date: 'date', time: 'datetime-local' }

/** The value that is compared with, by its type. Shows nothing where none is needed. */
function ValueInput({ leaf, type, error, onChange }: ValueProps) {
  const { operator, value } = leaf
  if (!needsValue(leaf)) return null
  const change = (event: { currentTarget: { value: string } }) =>
    onChange({ ...leaf, value: event.currentTarget.value })
  if (operator === 'in_last_days') {
    return (
      <TextInput
        aria-label="Days"
        type="number"
        min={1}
        max={conditionLimits.days}
        step={1}
        rightSection={<span className="dimmed">days</span>}
        rightSectionWidth={48}
        value={value}
        onChange={change}
        error={error}
      />
    )
  }
  const offered = type && choices[type]
  if (offered !== undefined) {
    return <NativeSelect aria-label="Value" data={[...offered]} value={value} onChange={change} error={error} />
  }
  return (
    <TextInput
      aria-label="Value"
      type={(type && inputTypes[type]) ?? 'text'}
      {...((type === 'number' || type === 'time') && { step: 'any' })}
      maxLength={conditionLimits.valueCharacters}
      value={value}
      onChange={change}
      error={error}
    />
  )
}
