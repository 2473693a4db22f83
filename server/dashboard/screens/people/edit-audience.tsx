import { useChange } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import { FormDialog } from '../../components/form-dialog.tsx'
import { useApiForm } from '../../components/use-api-form.ts'
import type { Audience } from './audience.ts'
import { AudienceFields, audiencePaths, audienceValues, doubleOptInOf } from './audience-fields.tsx'

export function EditAudience({ audience, onClose }: { audience: Audience; onClose: () => void }) {
  const { mode } = useScope()
  const update = useChange('PATCH /v1/audiences/:id')
  const mayChangeAsking = mode === 'live'
  const { form, ...sending } = useApiForm({
    initial: audienceValues(audience),
    fieldOf: audiencePaths,
    send: async (values) => {
      const { name, description } = values
      const body = {
        name,
        description: description === '' ? null : description,
        ...(mayChangeAsking && { doubleOptIn: doubleOptInOf(values) }),
      }
      await update.mutateAsync({ params: { id: audience.id }, body })
      onClose()
    },
  })
  return (
    <FormDialog title="Edit the audience" action="Save" {...sending} onClose={onClose}>
      <AudienceFields form={form} mayChangeAsking={mayChangeAsking} />
    </FormDialog>
  )
}
