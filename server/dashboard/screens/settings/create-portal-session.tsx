import { Button, Checkbox, ColorInput, Group, NativeSelect, Radio, Stack, Text, TextInput } from '@mantine/core'
import { useState } from 'react'
import type { Result } from '../../api/client.ts'
import { useChange, useGet } from '../../api/hooks.ts'
import { Copyable } from '../../components/copyable.tsx'
import { Dialog } from '../../components/dialog.tsx'
import { ErrorNotice } from '../../components/error-notice.tsx'
import { Loaded } from '../../components/loaded.tsx'
import { useApiForm } from '../../components/use-api-form.ts'
import { EventTypeBoxes } from '../webhooks/event-type-boxes.tsx'
import type { EventType } from '../webhooks/webhook-fields.tsx'

type Made = Result<'POST /v1/portal-sessions'>
type ColorScheme = Result<'GET /v1/portal-session'>['theme']['colorScheme']

const schemes: readonly { value: ColorScheme | ''; label: string }[] = [
  { value: '', label: 'As the service is set' },
  { value: 'auto', label: 'As the browser asks for' },
  { value: 'light', label: 'Light' },
  { value: 'dark', label: 'Dark' },
]

/**
 * Asks for whom the portal is and how it looks, then shows its link once.
 *
 * @param props.customer The initial value of the field.
 */
export function CreatePortalSession({ customer, onClose }: { customer: string; onClose: () => void }) {
  const create = useChange('POST /v1/portal-sessions')
  const types = useGet('GET /v1/event-types', {})
  const [made, setMade] = useState<Made | null>(null)
  const { form, error, isRunning, submit } = useApiForm({
    initial: {
      customer,
      kind: 'all' as 'all' | 'chosen',
      eventTypes: [] as EventType[],
      accentColor: '',
      colorScheme: '' as ColorScheme | '',
    },
    fieldOf: { 'theme.accentColor': 'accentColor', 'theme.colorScheme': 'colorScheme' },
    check: ({ kind, eventTypes }) =>
      kind === 'chosen' && eventTypes.length === 0 ? { eventTypes: 'Choose at least one event type' } : {},
    send: async ({ customer, kind, eventTypes, accentColor, colorScheme }) => {
      const theme = { ...(accentColor !== '' && { accentColor }), ...(colorScheme !== '' && { colorScheme }) }
      const body = { customer, theme, ...(kind === 'chosen' && { eventTypes }) }
      setMade(await create.mutateAsync({ body }))
    },
  })
  // One dialog for both, so that the focus returns to what opened it.
  return (
    <Dialog
      size="lg"
      title={made === null ? 'Create a link to the portal' : 'Copy the link now'}
      onClose={onClose}
      // Neither a click beside it nor a key loses the link, which may be under way.
      closeOnClickOutside={made === null && !isRunning}
      closeOnEscape={made === null && !isRunning}
    >
      {made === null ? (
        <form onSubmit={submit}>
          <Stack>
            {error !== null && <ErrorNotice error={error} />}
            <TextInput
              label="Customer"
              description="The portal shows the webhooks with this value of customer in their metadata."
              required
              data-autofocus
              maxLength={500}
              spellCheck={false}
              {...form.getInputProps('customer')}
            />
            <Radio.Group
              label="Event types they may choose"
              description="A webhook gets every event of its types in your account, whichever customer it is about."
              {...form.getInputProps('kind')}
            >
              <Group mt="xs">
                <Radio value="all" label="All" />
                <Radio value="chosen" label="Chosen" />
              </Group>
            </Radio.Group>
            {form.values.kind === 'chosen' && (
              <Checkbox.Group label="Chosen event types" {...form.getInputProps('eventTypes')}>
                <Loaded query={types} what="list of event types">
                  {({ data }) => <EventTypeBoxes of={data} />}
                </Loaded>
              </Checkbox.Group>
            )}
            <ColorInput
              label="Accent color"
              description="Of buttons and links. Empty: as the service is set."
              placeholder="#3448c5"
              format="hex"
              withEyeDropper={false}
              {...form.getInputProps('accentColor')}
            />
            <NativeSelect label="Color scheme" data={[...schemes]} {...form.getInputProps('colorScheme')} />
            <Group justify="flex-end">
              <Button variant="default" onClick={onClose}>
                Cancel
              </Button>
              <Button type="submit" loading={isRunning}>
                Create link
              </Button>
            </Group>
          </Stack>
        </form>
      ) : (
        <NewLink made={made} onClose={onClose} />
      )}
    </Dialog>
  )
}

function NewLink({ made: { url, createdAt, expiresAt }, onClose }: { made: Made; onClose: () => void }) {
  const minutes = Math.round((Date.parse(expiresAt) - Date.parse(createdAt)) / 60_000)
  return (
    <Stack>
      <Text>
        It works once, for {minutes} minutes, and is shown only now. Anyone with the link can see and change the
        webhooks of this customer. If you open it yourself, it is used up.
      </Text>
      <Copyable label="Copy the link" value={url} wraps autoFocus />
      <Group justify="flex-end">
        <Button variant="default" component="a" href={url} target="_blank" rel="noopener noreferrer">
          Open it
        </Button>
        <Button onClick={onClose}>Done</Button>
      </Group>
    </Stack>
  )
}
