import { ActionIcon, Button, Checkbox, Fieldset, NativeSelect, Text, TextInput } from '@mantine/core'
import { IconPlus, IconTrash } from '@tabler/icons-react'
import type { TemplateVariable } from './template.ts'

const types: readonly TemplateVariable['type'][] = ['string', 'number', 'boolean', 'date', 'list', 'object']

/** A variable as it is written: its fallback is text until it is saved. */
export type WrittenVariable = {
  /** Names the row while it is on the screen. */
  key: number
  name: string
  type: TemplateVariable['type']
  required: boolean
  fallback: string
}

let lastKey = 0

export function writtenOf({ name, type, required, fallback }: TemplateVariable): WrittenVariable {
  return { key: ++lastKey, name, type, required, fallback: fallback === null ? '' : String(fallback) }
}

/** Returns a variable as the API takes it. What does not fit its type is sent as it is: the API says why not. */
export function variableOf({ name, type, required, fallback }: WrittenVariable): TemplateVariable {
  return { name, type, required, fallback: required || fallback === '' ? null : fallbackOf(type, fallback) }
}

function fallbackOf(type: TemplateVariable['type'], text: string): string | number | boolean {
  if (type === 'number' && Number.isFinite(Number(text))) return Number(text)
  if (type === 'boolean' && (text === 'true' || text === 'false')) return text === 'true'
  return text
}

type Props = {
  variables: readonly WrittenVariable[]
  onChange: (variables: WrittenVariable[]) => void
  /** Why the API refuses one, by its key and field: `1.name`. */
  errors: Readonly<Record<string, string>>
  isReadOnly: boolean
}

/** The inputs for the variables of a template, which each email may set. */
export function VariableFields({ variables, onChange, errors, isReadOnly }: Props) {
  const change = (key: number, changes: Partial<WrittenVariable>) =>
    onChange(variables.map((one) => (one.key === key ? { ...one, ...changes } : one)))
  return (
    <Fieldset legend="Variables" variant="unstyled" disabled={isReadOnly}>
      <Text fz="xs" c="dimmed" mb="xs">
        What an email may tell the template. A fallback stands where an email tells nothing. In the preview, a variable
        without one has a sample.
      </Text>
      <div className="variables">
        {variables.map((variable, index) => {
          const { key, name, type, required, fallback } = variable
          const label = name === '' ? `variable ${index + 1}` : name
          const hasFallback = !required && type !== 'list' && type !== 'object'
          return (
            <div key={key} className="variable">
              <TextInput
                size="xs"
                aria-label={`Name of ${label}`}
                placeholder="firstName"
                className="mono"
                spellCheck={false}
                value={name}
                error={errors[`${key}.name`]}
                onChange={(event) => change(key, { name: event.currentTarget.value })}
              />
              <NativeSelect
                size="xs"
                aria-label={`Type of ${label}`}
                data={[...types]}
                value={type}
                error={errors[`${key}.type`]}
                onChange={(event) => change(key, { type: event.currentTarget.value as TemplateVariable['type'] })}
              />
              <TextInput
                size="xs"
                aria-label={`Fallback of ${label}`}
                placeholder={hasFallback ? 'Fallback' : 'None'}
                disabled={!hasFallback}
                value={hasFallback ? fallback : ''}
                error={errors[`${key}.fallback`]}
                onChange={(event) => change(key, { fallback: event.currentTarget.value })}
              />
              <Checkbox
                size="xs"
                label="Required"
                aria-label={`${label} is required`}
                checked={required}
                onChange={(event) => change(key, { required: event.currentTarget.checked })}
              />
              <ActionIcon
                variant="subtle"
                color="gray"
                aria-label={`Remove ${label}`}
                onClick={() => onChange(variables.filter((one) => one.key !== key))}
              >
                <IconTrash size={16} aria-hidden />
              </ActionIcon>
            </div>
          )
        })}
      </div>
      {!isReadOnly && (
        <Button
          mt="xs"
          size="xs"
          variant="default"
          leftSection={<IconPlus size={14} aria-hidden />}
          onClick={() =>
            onChange([...variables, { key: ++lastKey, name: '', type: 'string', required: false, fallback: '' }])
          }
        >
          Add a variable
        </Button>
      )}
    </Fieldset>
  )
}
