import { Checkbox, Textarea, TextInput } from '@mantine/core'
import type { UseFormReturnType } from '@mantine/form'
import type { Result } from '../../api/client.ts'
import { useGet } from '../../api/hooks.ts'
import { type PortalAccess, useScope } from '../../api/scope.tsx'
import { Loaded } from '../../components/loaded.tsx'
import { faultOfPairs, type Pair, PairsField } from '../../components/pairs-field.tsx'
import { EventTypeBoxes } from './event-type-boxes.tsx'

export type EventType = Result<'GET /v1/webhooks'>['data'][number]['events'][number]

export type WebhookValues = { url: string; events: EventType[]; description: string; metadata: Pair[] }

/** Returns the faults of the fields that are found without the API. */
export function faultsOf({ events, metadata }: WebhookValues) {
  return {
    events: events.length === 0 ? 'Choose at least one event' : null,
    metadata: faultOfPairs(metadata),
  }
}

/** Returns the metadata as the API takes it. */
export function metadataOf({ metadata }: WebhookValues): Record<string, string> {
  return Object.fromEntries(metadata.map(({ name, value }) => [name, value]))
}

/** Returns true when an event type may be chosen: in the portal, its session may have some of them only. */
export function isOffered(portal: PortalAccess | null, type: EventType): boolean {
  return portal?.eventTypes?.includes(type) ?? true
}

/** The fields of the form for a webhook. */
export function WebhookFields({ form }: { form: UseFormReturnType<WebhookValues> }) {
  const { portal } = useScope()
  const types = useGet('GET /v1/event-types', {})
  const chosen = form.getInitialValues().events
  // Those that the webhook has may stay.
  const isShown = ({ type }: { type: EventType }) => isOffered(portal, type) || chosen.includes(type)
  return (
    <>
      <TextInput
        label="URL"
        description="Receives each event by POST."
        placeholder="https://example.com/hooks"
        required
        data-autofocus
        spellCheck={false}
        {...form.getInputProps('url')}
      />
      <Checkbox.Group label="Events" required {...form.getInputProps('events')}>
        <Loaded query={types} what="list of event types">
          {({ data }) => <EventTypeBoxes of={data.filter(isShown)} />}
        </Loaded>
      </Checkbox.Group>
      <Textarea label="Description" description="For people. May be empty." {...form.getInputProps('description')} />
      {portal === null && (
        <PairsField
          label="Metadata"
          description="Pairs of your own, to find it by. One with the name customer says whose portal shows it."
          pairs={form.values.metadata}
          error={form.errors.metadata}
          onChange={(metadata) => form.setFieldValue('metadata', metadata)}
        />
      )}
    </>
  )
}
