import { NativeSelect, TextInput } from '@mantine/core'
import { useChange, useGet } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import { DeleteByName } from '../../components/delete-by-name.tsx'
import { FormDialog } from '../../components/form-dialog.tsx'
import { useApiForm } from '../../components/use-api-form.ts'
import { compares, type Property, typedOf, typeLabels, valueTyped } from './property.ts'
import { PropertyInput } from './property-input.tsx'

const typeOptions = Object.entries(typeLabels).map(([value, label]) => ({ value, label }))
const fallbackHint = 'Stands in messages for people who have no value. It is no value of theirs.'

export function DeclareProperty({ onClose }: { onClose: () => void }) {
  const create = useChange('POST /v1/contact-properties')
  const { form, ...sending } = useApiForm({
    initial: { key: '', type: 'string' as Property['type'], fallback: '' },
    send: async ({ key, type, fallback }) => {
      await create.mutateAsync({ body: { key, type, fallback: valueTyped(type, fallback) } })
      onClose()
    },
  })
  const { type } = form.values
  return (
    <FormDialog title="Declare a property" action="Declare property" {...sending} onClose={onClose}>
      <TextInput
        label="Key"
        description="Its name in templates, conditions and the API, such as plan. It cannot change."
        required
        data-autofocus
        autoComplete="off"
        spellCheck={false}
        {...form.getInputProps('key')}
      />
      <NativeSelect
        label="Type"
        description="It cannot change."
        data={typeOptions}
        value={type}
        onChange={(event) => form.setValues({ type: event.currentTarget.value as Property['type'], fallback: '' })}
        error={form.errors.type}
      />
      <PropertyInput
        type={type}
        label="Fallback (optional)"
        description={fallbackHint}
        {...form.getInputProps('fallback')}
      />
    </FormDialog>
  )
}

type Props = { property: Property; onClose: () => void }

export function ChangeFallback({ property: { key, type, fallback }, onClose }: Props) {
  const update = useChange('PATCH /v1/contact-properties/:key')
  const { form, ...sending } = useApiForm({
    initial: { fallback: typedOf(fallback) },
    send: async (values) => {
      await update.mutateAsync({ params: { key }, body: { fallback: valueTyped(type, values.fallback) } })
      onClose()
    },
  })
  return (
    <FormDialog title={`Change the fallback of ${key}`} action="Save" {...sending} onClose={onClose}>
      <PropertyInput type={type} label="Fallback" description={fallbackHint} {...form.getInputProps('fallback')} />
    </FormDialog>
  )
}

/** Segments that are looked through for the property: a page of the API. */
const searched = 100

export function DeleteProperty({ property: { key }, onClose }: Props) {
  const { can } = useScope()
  const segments = useGet('GET /v1/segments', { query: { limit: searched } }, { enabled: can('segments:read') })
  const broken = segments.data?.data.filter(({ conditions }) => compares(conditions, key)) ?? []
  return (
    <DeleteByName
      operation="DELETE /v1/contact-properties/:key"
      input={{ params: { key } }}
      what="property"
      name={key}
      onClose={onClose}
    >
      <p>The values of all people are taken away, and messages no longer have it. This cannot be undone.</p>
      {broken.length > 0 ? (
        <>
          <p>These segments compare it, and choose nobody until their conditions are changed:</p>
          <ul>
            {broken.map(({ id, name }) => (
              <li key={id}>{name}</li>
            ))}
          </ul>
        </>
      ) : (
        <p>Segments that compare it choose nobody until their conditions are changed.</p>
      )}
      <p>Until the values of all people are gone, at 200,000 a minute, the key cannot be declared again.</p>
    </DeleteByName>
  )
}
