import { notifications } from '@mantine/notifications'
import { useChange } from '../../api/hooks.ts'
import { FormDialog } from '../../components/form-dialog.tsx'
import { localTime, momentOf, timeFault } from '../../components/local-time.ts'
import { useApiForm } from '../../components/use-api-form.ts'
import { ZonedTimeInput } from '../../components/zoned-time-input.tsx'

type Props = {
  id: string
  /** When it was to be sent as the dialog was opened. */
  scheduledAt: string
  /** When it is to be sent now. Null: it is not scheduled any more. */
  current: string | null
  onClose: () => void
}

/** Asks when a scheduled email is to be sent. */
export function RescheduleEmail({ id, scheduledAt, current, onClose }: Props) {
  const update = useChange('PATCH /v1/emails/:id')
  const { form, ...sending } = useApiForm({
    initial: { scheduledAt: localTime(new Date(scheduledAt)) },
    check: (values) => ({ scheduledAt: timeFault(values.scheduledAt, scheduledAt) }),
    send: async (values) => {
      const body = { scheduledAt: momentOf(values.scheduledAt, scheduledAt) ?? values.scheduledAt }
      // Nothing is to be changed.
      if (body.scheduledAt === current) return onClose()
      await update.mutateAsync({ params: { id }, body })
      notifications.show({ message: 'The email has its new time.' })
      onClose()
    },
  })
  return (
    <FormDialog title="Change when it is sent" action="Change the time" {...sending} onClose={onClose}>
      <ZonedTimeInput data-autofocus initial={scheduledAt} {...form.getInputProps('scheduledAt')} />
    </FormDialog>
  )
}
