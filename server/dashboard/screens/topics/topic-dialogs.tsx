import { NativeSelect, Textarea, TextInput } from '@mantine/core'
import type { UseFormReturnType } from '@mantine/form'
import { useChange } from '../../api/hooks.ts'
import { DeleteByName } from '../../components/delete-by-name.tsx'
import { FormDialog } from '../../components/form-dialog.tsx'
import { useApiForm } from '../../components/use-api-form.ts'
import { defaultLabels, type Topic } from './topic.ts'

const defaultOptions = Object.entries(defaultLabels).map(([value, { long }]) => ({ value, label: long }))

type Texts = { name: string; description: string }

function TextFields({ getInputProps }: Pick<UseFormReturnType<Texts>, 'getInputProps'>) {
  return (
    <>
      <TextInput
        label="Name"
        description="People see it."
        required
        maxLength={200}
        data-autofocus
        {...getInputProps('name')}
      />
      <Textarea
        label="Description"
        description="What they get with it, such as: Once a month. People see it. May be empty."
        maxLength={500}
        autosize
        minRows={2}
        maxRows={6}
        {...getInputProps('description')}
      />
    </>
  )
}

function written({ name, description }: Texts) {
  return { name, description: description === '' ? null : description }
}

export function CreateTopic({ onClose }: { onClose: () => void }) {
  const create = useChange('POST /v1/topics')
  const { form, ...sending } = useApiForm({
    initial: { name: '', description: '', default: 'opt_out' as Topic['default'] },
    send: async (values) => {
      await create.mutateAsync({ body: { ...written(values), default: values.default } })
      onClose()
    },
  })
  return (
    <FormDialog title="Create a topic" action="Create topic" {...sending} onClose={onClose}>
      <TextFields getInputProps={form.getInputProps} />
      <NativeSelect
        label="People who have chosen nothing"
        description="It cannot change."
        data={defaultOptions}
        {...form.getInputProps('default')}
      />
    </FormDialog>
  )
}

type Props = { topic: Topic; onClose: () => void }

export function EditTopic({ topic: { id, name, description }, onClose }: Props) {
  const update = useChange('PATCH /v1/topics/:id')
  const { form, ...sending } = useApiForm({
    initial: { name, description: description ?? '' },
    send: async (values) => {
      await update.mutateAsync({ params: { id }, body: written(values) })
      onClose()
    },
  })
  return (
    <FormDialog title="Edit the topic" action="Save" {...sending} onClose={onClose}>
      <TextFields getInputProps={form.getInputProps} />
    </FormDialog>
  )
}

export function DeleteTopic({ topic: { id, name }, onClose }: Props) {
  return (
    <DeleteByName
      operation="DELETE /v1/topics/:id"
      input={{ params: { id } }}
      what="topic"
      name={name}
      onClose={onClose}
    >
      <p>
        It goes from the page of preferences, and what people chose is forgotten, who left it too. This cannot be
        undone.
      </p>
      <p>
        It cannot be deleted while a campaign about it is scheduled, sending or paused. Drafts cannot be sent until they
        have another topic, or none. Emails about it that still wait are not sent.
      </p>
    </DeleteByName>
  )
}
