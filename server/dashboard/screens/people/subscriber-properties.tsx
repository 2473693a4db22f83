import { Button } from '@mantine/core'
import { useState } from 'react'
import { useChange, useGet } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import { ErrorNotice } from '../../components/error-notice.tsx'
import { Facts, Section } from '../../components/facts.tsx'
import { FormDialog } from '../../components/form-dialog.tsx'
import { useApiForm } from '../../components/use-api-form.ts'
import { type Property, type PropertyValue, shownValue, typedOf, valueTyped } from '../properties/property.ts'
import { PropertyInput } from '../properties/property-input.tsx'
import type { Subscriber } from './person.ts'

/** Reads the declared properties, where the reader may see them. */
export function useDeclared() {
  const { can } = useScope()
  return useGet('GET /v1/contact-properties', {}, { enabled: can('contacts:read') })
}

type SectionProps = { subscriber: Subscriber; query: ReturnType<typeof useDeclared> }

/** The values that a person has of the declared properties. Shows nothing where none is declared. */
export function SubscriberProperties({ subscriber, query }: SectionProps) {
  const { can } = useScope()
  const { data, error, refetch } = query
  const [isEditing, setEditing] = useState(false)
  if (data === undefined && error !== null) {
    return (
      <Section title="Properties">
        <ErrorNotice error={error} onRetry={() => void refetch()} />
      </Section>
    )
  }
  const declared = data?.data ?? []
  if (declared.length === 0) return null
  const { properties } = subscriber
  return (
    <Section
      title="Properties"
      action={
        can('subscribers:write') && (
          <Button size="xs" variant="default" onClick={() => setEditing(true)}>
            Change values
          </Button>
        )
      }
    >
      <Facts of={declared.map(({ key }) => [key, <Value key={key} of={properties[key]} />])} />
      {isEditing && <EditProperties subscriber={subscriber} declared={declared} onClose={() => setEditing(false)} />}
    </Section>
  )
}

function Value({ of: value }: { of: PropertyValue | undefined }) {
  return value === undefined ? <span className="dimmed">No value</span> : shownValue(value)
}

type Props = { subscriber: Subscriber; declared: readonly Property[]; onClose: () => void }

function EditProperties({ subscriber: { id, email, properties }, declared, onClose }: Props) {
  const update = useChange('PATCH /v1/subscribers/:id')
  const initial = Object.fromEntries(declared.map(({ key }) => [key, typedOf(properties[key])]))
  const { form, ...sending } = useApiForm<Record<string, string>>({
    initial,
    fieldOf: Object.fromEntries(declared.map(({ key }) => [`properties.${key}`, key])),
    send: async (values) => {
      // Only changed values are sent: others stay as they are, an empty text too.
      const changed = declared.filter(({ key }) => values[key] !== initial[key])
      const given = changed.map(({ key, type }) => [key, valueTyped(type, values[key] ?? '')] as const)
      await update.mutateAsync({ params: { id }, body: { properties: Object.fromEntries(given) } })
      onClose()
    },
  })
  return (
    <FormDialog title={`Properties of ${email}`} action="Save" {...sending} onClose={onClose}>
      {declared.map(({ key, type }) => (
        <PropertyInput key={key} type={type} label={key} {...form.getInputProps(key)} />
      ))}
    </FormDialog>
  )
}
