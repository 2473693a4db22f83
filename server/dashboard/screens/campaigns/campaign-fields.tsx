import { Checkbox, Fieldset, Group, NativeSelect, Stack, Textarea, TextInput } from '@mantine/core'
import type { UseFormReturnType } from '@mantine/form'
import { useChoices } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import { newestOffered } from '../../components/newest-offered.ts'
import { ScreenLink } from '../../components/screen-link.tsx'
import { unread } from '../../components/unread.tsx'
import type { TemplatePreview } from '../templates/template.ts'
import { AbTestFields } from './ab-test-fields.tsx'
import type { CampaignValues } from './campaign-values.ts'
import { ContentFields } from './content-fields.tsx'
import { SegmentsField } from './segments-field.tsx'
import { SendWindowFields } from './send-window-fields.tsx'
import { TopicField } from './topic-field.tsx'

type Props = { form: UseFormReturnType<CampaignValues> }
type AllProps = Props & {
  /** The errors that the preview found. */
  faults: TemplatePreview['errors']
}

/** The fields of the form for a campaign. */
export function CampaignFields({ form, faults }: AllProps) {
  return (
    <>
      <TextInput
        label="Name"
        description="What you and your colleagues call it. Recipients do not see it."
        required
        maxLength={200}
        {...form.getInputProps('name')}
      />
      <AudienceField form={form} />
      <SegmentsField form={form} />
      <TopicField form={form} />
      <SenderFields form={form} />
      <ContentFields form={form} faults={faults} />
      <AbTestFields form={form} />
      <DeliveryFields form={form} />
    </>
  )
}

function AudienceField({ form }: Props) {
  const { can } = useScope()
  const { audienceId } = form.values
  const audiences = useChoices('GET /v1/audiences', { query: {} }, { enabled: can('audiences:read') })
  const fault = unread(audiences, 'The audiences')
  const options = audiences.data?.map(({ id, name }) => ({ value: id, label: name })) ?? []
  const whoGetsIt = `Everyone in it who is active when the campaign starts. ${newestOffered(audiences)}`
  const isListed = audienceId === '' || options.some(({ value }) => value === audienceId)
  return (
    <NativeSelect
      label="Audience"
      description={audiences.data?.length === 0 ? <NoAudience /> : whoGetsIt}
      data={[
        { value: '', label: 'Choose one' },
        ...options,
        ...(isListed ? [] : [{ value: audienceId, label: audienceId }]),
      ]}
      {...form.getInputProps('audienceId')}
      {...(fault !== null && { error: fault })}
      // Segments are those of one audience.
      onChange={(event) => form.setValues({ audienceId: event.currentTarget.value, segmentIds: [] })}
    />
  )
}

function NoAudience() {
  return (
    <>
      There is no audience yet. <ScreenLink to="/audiences">Create one</ScreenLink>, with the people to write to.
    </>
  )
}

function SenderFields({ form }: Props) {
  const { mode } = useScope()
  return (
    <>
      <TextInput
        label="From"
        description={
          mode === 'live' ? 'An address at a verified domain of the account.' : 'Any address: test mode sends nothing.'
        }
        placeholder="Shop <hello@example.com>"
        required
        {...form.getInputProps('from')}
      />
      <Textarea
        label="Reply to"
        description="Where answers go, one address a line. Empty: to the sender."
        autosize
        minRows={1}
        maxRows={6}
        spellCheck={false}
        {...form.getInputProps('replyTo')}
      />
    </>
  )
}

function DeliveryFields({ form }: Props) {
  return (
    <Fieldset legend="Delivery" variant="unstyled">
      <Stack mt="xs">
        <Group>
          <Checkbox label="Track opens" {...form.getInputProps('trackOpens', { type: 'checkbox' })} />
          <Checkbox label="Track clicks" {...form.getInputProps('trackClicks', { type: 'checkbox' })} />
        </Group>
        <Checkbox
          label="A page for everybody on the web"
          description="With the fallbacks for a person, once it has started. Its link stands at the campaign."
          {...form.getInputProps('isPublic', { type: 'checkbox' })}
        />
        <TextInput
          label="Messages an hour"
          description="At most so many in any 60 minutes. Empty: as fast as they leave."
          inputMode="numeric"
          {...form.getInputProps('throttle')}
        />
        <SendWindowFields form={form} />
        <NativeSelect
          label="If the service was down at the scheduled time"
          data={[
            { value: 'send', label: 'Send it late' },
            { value: 'skip', label: 'Cancel it when it is more than 10 minutes late' },
          ]}
          {...form.getInputProps('lateStart')}
        />
        <Textarea
          label="Tags"
          description="Of each email, one a line. They are in statistics and webhooks."
          autosize
          minRows={1}
          maxRows={10}
          {...form.getInputProps('tags')}
        />
      </Stack>
    </Fieldset>
  )
}
