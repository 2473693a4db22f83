import { notifications } from '@mantine/notifications'
import { useChange } from '../../api/hooks.ts'
import { FormDialog } from '../../components/form-dialog.tsx'
import { localTime } from '../../components/local-time.ts'
import { useApiForm } from '../../components/use-api-form.ts'
import { ZonedTimeInput } from '../../components/zoned-time-input.tsx'

type Props = {
  id: string
  /** When it is sent now. */
  scheduledAt: string
  onClose: () => void
}

/** Asks when a scheduled email is to be sent. */
export function RescheduleEmail({ id, scheduledAt, onClose }: Props) {
  const update = useChange('PATCH /v1/emails/:id')
  const { form, ...sending } = useApiForm({
    initial: { scheduledAt: localTime(new Date(scheduledAt)) },
    check: (values) => ({ scheduledAt: Number.isNaN(Date.parse(values.scheduledAt)) ? 'Choose a time' : null }),
    send: async (values) => {
      const body = { scheduledAt: new Date(values.scheduledAt).toISOString() }
      await update.mutateAsync({ params: { id }, body })
      notifications.show({ message: 'The email has its new time.' })
      onClose()
    },
  })
  return (
    <FormDialog title="Change when it is sent" action="Change the time" {...sending} onClose={onClose}>
      <ZonedTimeInput data-autofocus {...form.getInputProps('scheduledAt')} />
    </FormDialog>
  )
}
