import { Radio, Stack, Text, TextInput } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { useChange, useGet } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import { FormDialog } from '../../components/form-dialog.tsx'
import { localTime } from '../../components/time.tsx'
import { useApiForm } from '../../components/use-api-form.ts'
import type { CampaignDetails } from './campaign.ts'

const hourMs = 3_600_000

/** Asks when a draft is to be sent, and says to whom. */
export function SendCampaign({ campaign, onClose }: { campaign: CampaignDetails; onClose: () => void }) {
  const { id, name, audienceId, segmentIds } = campaign
  const { can, mode } = useScope()
  const { data: audience } = useGet(
    'GET /v1/audiences/:id',
    { params: { id: audienceId } },
    { enabled: can('audiences:read') },
  )
  const send = useChange('POST /v1/campaigns/:id/send')
  const { form, ...sending } = useApiForm({
    initial: { when: 'now', scheduledAt: localTime(new Date(Date.now() + hourMs)) },
    check: ({ when, scheduledAt }) =>
      when === 'later' && Number.isNaN(Date.parse(scheduledAt)) ? { scheduledAt: 'Choose a time' } : {},
    send: async ({ when, scheduledAt }) => {
      const body = when === 'now' ? {} : { scheduledAt: new Date(scheduledAt).toISOString() }
      await send.mutateAsync({ params: { id }, body })
      notifications.show({ message: when === 'now' ? `${name} is being sent.` : `${name} is scheduled.` })
      onClose()
    },
  })
  const { when } = form.values
  return (
    <FormDialog
      title={`Send ${name}?`}
      action={when === 'now' ? 'Send it now' : 'Schedule it'}
      {...sending}
      onClose={onClose}
    >
      <Text>
        It goes to everyone who is active in <strong>{audience?.name ?? audienceId}</strong>
        {segmentIds.length > 0 && ` and in ${segmentIds.length === 1 ? 'the segment' : 'one of the segments'} chosen`}{' '}
        when it starts.{' '}
        {mode === 'test'
          ? 'In test mode nothing leaves: each email is checked.'
          : 'What has left cannot be taken back.'}
      </Text>
      <Radio.Group label="When" {...form.getInputProps('when')}>
        <Stack gap="xs" mt="xs">
          <Radio value="now" label="Now" data-autofocus />
          <Radio value="later" label="At a time" />
        </Stack>
      </Radio.Group>
      {when === 'later' && (
        <TextInput
          type="datetime-local"
          label="Time"
          description={`Of your zone, ${Intl.DateTimeFormat().resolvedOptions().timeZone}.`}
          required
          {...form.getInputProps('scheduledAt')}
        />
      )}
    </FormDialog>
  )
}
