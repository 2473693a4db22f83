import {
  Alert,
  Button,
  Checkbox,
  Fieldset,
  Group,
  NativeSelect,
  Radio,
  Stack,
  Text,
  Textarea,
  TextInput,
} from '@mantine/core'
import { useState } from 'react'
import type { Grant, PermissionSet } from '../../../../contract/permissions.ts'
import type { Result } from '../../api/client.ts'
import { useChange } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import { Copyable } from '../../components/copyable.tsx'
import { Dialog } from '../../components/dialog.tsx'
import { ErrorNotice } from '../../components/error-notice.tsx'
import { useApiForm } from '../../components/use-api-form.ts'
import { permissionsByResource, setLabels } from './grants.ts'

type CreatedKey = Result<'POST /v1/api-keys'>

const dayMs = 86_400_000
const expiries = [
  { value: '', label: 'Never' },
  { value: '7', label: 'In 7 days' },
  { value: '30', label: 'In 30 days' },
  { value: '90', label: 'In 90 days' },
  { value: '365', label: 'In a year' },
]

/** Asks for what a key may do, and shows the key once. */
export function CreateApiKey({ onClose }: { onClose: () => void }) {
  const { mode } = useScope()
  const [created, setCreated] = useState<CreatedKey | null>(null)
  return (
    <Dialog
      size="lg"
      onClose={onClose}
      title={created === null ? `Create a ${mode} key` : 'Copy the key now'}
      // A click beside it would lose the key.
      closeOnClickOutside={created === null}
    >
      {created === null ? (
        <KeyForm onCreated={setCreated} onClose={onClose} />
      ) : (
        <NewKey created={created} onClose={onClose} />
      )}
    </Dialog>
  )
}

function NewKey({ created, onClose }: { created: CreatedKey; onClose: () => void }) {
  return (
    <Stack>
      <Text>This is the only time that “{created.name}” is shown. Keep it where your program reads its secrets.</Text>
      <Copyable label="Copy the key" value={created.key} wraps />
      <Alert variant="light" color="gray" role="note" title="Try it">
        <pre className="block">{`curl -H 'Authorization: Bearer ${created.key}' \\\n  ${window.location.origin}/v1/event-types`}</pre>
      </Alert>
      <Group justify="flex-end">
        <Button onClick={onClose}>I have copied it</Button>
      </Group>
    </Stack>
  )
}

type FormProps = { onCreated: (created: CreatedKey) => void; onClose: () => void }

function KeyForm({ onCreated, onClose }: FormProps) {
  const create = useChange('POST /v1/api-keys')
  const { form, error, isRunning, submit } = useApiForm({
    initial: {
      name: '',
      kind: 'full_access' as PermissionSet | 'chosen',
      permissions: [] as Grant[],
      expiresAt: '',
      allowedAddresses: '',
    },
    check: ({ kind, permissions }) =>
      kind === 'chosen' && permissions.length === 0 ? { permissions: 'Choose at least one permission' } : {},
    send: async ({ name, kind, permissions, expiresAt, allowedAddresses }) => {
      const addresses = allowedAddresses.split(/[\s,]+/).filter((address) => address !== '')
      const body = {
        name,
        permissions: kind === 'chosen' ? permissions : [kind],
        ...(expiresAt !== '' && { expiresAt: new Date(Date.now() + Number(expiresAt) * dayMs).toISOString() }),
        ...(addresses.length > 0 && { allowedAddresses: addresses }),
      }
      onCreated(await create.mutateAsync({ body }))
    },
  })
  return (
    <form onSubmit={submit}>
      <Stack>
        {error !== null && <ErrorNotice error={error} />}
        <TextInput
          label="Name"
          description="Where the key is used, such as “Shop, production”."
          required
          data-autofocus
          maxLength={100}
          {...form.getInputProps('name')}
        />
        <Radio.Group label="Permissions" {...form.getInputProps('kind')}>
          <Stack gap="xs" mt="xs">
            {Object.entries(setLabels).map(([value, { label, description }]) => (
              <Radio key={value} value={value} label={label} description={description} />
            ))}
            <Radio value="chosen" label="Chosen" description="Only the permissions chosen below." />
          </Stack>
        </Radio.Group>
        {form.values.kind === 'chosen' && (
          <Checkbox.Group label="Chosen permissions" {...form.getInputProps('permissions')}>
            <div className="permission-grid">
              {permissionsByResource().map(([resource, permissions]) => (
                <Fieldset key={resource} legend={resource.replaceAll('_', ' ')} variant="unstyled">
                  {permissions.map((permission) => (
                    <Checkbox
                      key={permission}
                      value={permission}
                      size="xs"
                      label={permission}
                      className="mono"
                      mt={4}
                    />
                  ))}
                </Fieldset>
              ))}
            </div>
          </Checkbox.Group>
        )}
        <NativeSelect label="Expires" data={expiries} {...form.getInputProps('expiresAt')} />
        <Textarea
          label="Allowed addresses"
          description="IP addresses or networks such as 203.0.113.0/24, one a line. Empty: from everywhere."
          autosize
          minRows={2}
          maxRows={8}
          spellCheck={false}
          {...form.getInputProps('allowedAddresses')}
        />
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button type="submit" loading={isRunning}>
            Create API key
          </Button>
        </Group>
      </Stack>
    </form>
  )
}
