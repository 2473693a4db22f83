import { Radio, Stack } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { useChange, useGet } from '../../api/hooks.ts'
import { FormDialog } from '../../components/form-dialog.tsx'
import { Loaded } from '../../components/loaded.tsx'
import { useApiForm } from '../../components/use-api-form.ts'
import { countOf } from '../overview/format.ts'

type Props = { account: { id: string; name: string; plan: string }; onClose: () => void }

export function ChangePlan({ account: { id, name, plan }, onClose }: Props) {
  const plans = useGet('GET /v1/operator/plans', {})
  const change = useChange('PATCH /v1/operator/accounts/:id')
  const { form, ...sending } = useApiForm({
    initial: { plan },
    send: async (body) => {
      await change.mutateAsync({ params: { id }, body })
      notifications.show({ message: `${name} has the plan ${body.plan} now.` })
      onClose()
    },
  })
  return (
    <FormDialog title={`Plan of ${name}`} action="Change plan" {...sending} onClose={onClose}>
      <Loaded query={plans} what="plan">
        {({ data }) => (
          <Radio.Group
            label="Plan"
            description="The audit log of the account tells who changed it."
            {...form.getInputProps('plan')}
          >
            <Stack gap="sm" mt="xs">
              {data.map(({ name: label, requestsPerMinute }) => (
                <Radio
                  key={label}
                  value={label}
                  label={label}
                  description={`${countOf(requestsPerMinute)} ${requestsPerMinute === 1 ? 'request' : 'requests'} a minute`}
                />
              ))}
            </Stack>
          </Radio.Group>
        )}
      </Loaded>
    </FormDialog>
  )
}
