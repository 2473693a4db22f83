import { Radio, Stack, Text, TextInput } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { useState } from 'react'
import { useChange, useGet } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import { FormDialog } from '../../components/form-dialog.tsx'
import { momentOf, timeFault, localTime as toInput } from '../../components/local-time.ts'
import { useApiForm } from '../../components/use-api-form.ts'
import { readerZone, ZonedTimeInput } from '../../components/zoned-time-input.tsx'
import type { CampaignDetails } from './campaign.ts'

const minuteMs = 60_000
const hourMs = 60 * minuteMs
const dayMs = 24 * hourMs

type When = 'now' | 'later' | 'local'
type Values = { when: When; scheduledAt: string; localTime: string; fallbackTimezone: string }

function bodyOf({ when, scheduledAt, localTime, fallbackTimezone }: Values, initial: string) {
  if (when === 'later') return { scheduledAt: momentOf(scheduledAt, initial) ?? scheduledAt }
  return when === 'local' ? { localTime, fallbackTimezone } : {}
}

/** Asks when a draft is to be sent, and says to whom. */
export function SendCampaign({ campaign, onClose }: { campaign: CampaignDetails; onClose: () => void }) {
  const { id, name, audienceId, segmentIds } = campaign
  const { can, mode } = useScope()
  const { data: audience } = useGet(
    'GET /v1/audiences/:id',
    { params: { id: audienceId } },
    { enabled: can('audiences:read') },
  )
  const [inAnHour] = useState(() => {
    const laterMs = Date.now() + hourMs
    return new Date(laterMs - (laterMs % minuteMs)).toISOString()
  })
  const send = useChange('POST /v1/campaigns/:id/send')
  const { form, ...sending } = useApiForm({
    initial: {
      when: 'now' as When,
      scheduledAt: toInput(new Date(inAnHour)),
      localTime: toInput(new Date(Date.now() + dayMs)),
      fallbackTimezone: readerZone,
    },
    check: ({ when, scheduledAt, localTime }) => ({
      ...(when === 'later' && { scheduledAt: timeFault(scheduledAt, inAnHour) }),
      ...(when === 'local' && Number.isNaN(Date.parse(localTime)) && { localTime: 'Choose a time' }),
    }),
    send: async (values) => {
      const { when } = values
      const body = bodyOf(values, inAnHour)
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
          <Radio value="local" label="At each person’s local time" />
        </Stack>
      </Radio.Group>
      {when === 'later' && <ZonedTimeInput initial={inAnHour} {...form.getInputProps('scheduledAt')} />}
      {when === 'local' && (
        <>
          <TextInput
            type="datetime-local"
            label="Local time"
            description="In the zone that the property timezone of each person names."
            required
            {...form.getInputProps('localTime')}
          />
          <TextInput
            label="Zone of the others"
            description="For those whose property names none, such as Europe/Berlin."
            required
            {...form.getInputProps('fallbackTimezone')}
          />
        </>
      )}
    </FormDialog>
  )
}
