import { Checkbox, Fieldset, Group, NativeSelect, Stack, Textarea, TextInput } from '@mantine/core'
import type { UseFormReturnType } from '@mantine/form'
import { useGet } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import { CodeField } from '../../components/code-field.tsx'
import { ScreenLink } from '../../components/screen-link.tsx'
import type { CampaignDetails } from './campaign.ts'

/** A campaign as it is written: lists are lines, and what may be empty is empty text. */
export type CampaignValues = {
  name: string
  audienceId: string
  from: string
  replyTo: string
  subject: string
  preheader: string
  html: string
  text: string
  trackOpens: boolean
  trackClicks: boolean
  tags: string
  throttle: string
  lateStart: 'send' | 'skip'
}

/** The fields that have another name in the body of a request. */
export const fieldOf = {
  'content.preheader': 'preheader',
  'content.html': 'html',
  'content.text': 'text',
  content: 'html',
} as const

const firstHtml = `<p>Hello {{ contact.firstName | default: "there" }},</p>

<p>Write your message here.</p>

<p><a href="{{ unsubscribeUrl }}">Unsubscribe</a></p>
`

/** What a new campaign begins with. */
export const emptyValues: CampaignValues = {
  name: '',
  audienceId: '',
  from: '',
  replyTo: '',
  subject: '',
  preheader: '',
  html: firstHtml,
  text: '',
  trackOpens: false,
  trackClicks: false,
  tags: '',
  throttle: '',
  lateStart: 'send',
}

export function valuesOf(campaign: CampaignDetails): CampaignValues {
  const { name, audienceId, from, subject, content, trackOpens, trackClicks, lateStart, throttle } = campaign
  return {
    name,
    audienceId,
    from,
    replyTo: campaign.replyTo.join('\n'),
    subject,
    preheader: content.preheader ?? '',
    html: content.html ?? '',
    text: content.text ?? '',
    trackOpens,
    trackClicks,
    tags: campaign.tags.join('\n'),
    throttle: throttle === null ? '' : String(throttle),
    lateStart,
  }
}

/** Returns the values as the API takes them. */
export function bodyOf({ replyTo, tags, throttle, preheader, html, text, ...rest }: CampaignValues) {
  return {
    ...rest,
    replyTo: linesOf(replyTo),
    tags: linesOf(tags),
    throttle: throttle.trim() === '' ? null : Number(throttle),
    content: { preheader: orNull(preheader), html: orNull(html), text: orNull(text) },
  }
}

function orNull(text: string): string | null {
  return text === '' ? null : text
}

/** Returns the lines of a text that hold something. */
export function linesOf(text: string): string[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
}

/** As many audiences as one page of the API has. */
const offered = 100

type Props = { form: UseFormReturnType<CampaignValues> }

/** What there is to fill in for a campaign. */
export function CampaignFields({ form }: Props) {
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
      <SenderFields form={form} />
      <TextInput
        label="Subject"
        description={'May have Liquid: {{ contact.firstName | default: "there" }}.'}
        required
        {...form.getInputProps('subject')}
      />
      <TextInput
        label="Preheader"
        description="What mail programs show beside the subject. May be empty."
        {...form.getInputProps('preheader')}
      />
      <CodeField
        label="HTML"
        description="Liquid: contact.firstName, contact.lastName, contact.email, account.name, campaign.name and unsubscribeUrl."
        rows={18}
        value={form.values.html}
        error={form.errors.html}
        onChange={(value) => form.setFieldValue('html', value)}
      />
      <CodeField
        label="Text"
        description="For mail programs that show no HTML. Empty: it is made from the HTML."
        rows={6}
        value={form.values.text}
        error={form.errors.text}
        onChange={(value) => form.setFieldValue('text', value)}
      />
      <DeliveryFields form={form} />
    </>
  )
}

function AudienceField({ form }: Props) {
  const { can } = useScope()
  const { audienceId } = form.values
  const { data } = useGet('GET /v1/audiences', { query: { limit: offered } }, { enabled: can('audiences:read') })
  const options = data?.data.map(({ id, name }) => ({ value: id, label: name })) ?? []
  const whoGetsIt = `Everyone in it who is active when the campaign starts.${data?.nextCursor == null ? '' : ` The newest ${offered} are offered.`}`
  const isListed = audienceId === '' || options.some(({ value }) => value === audienceId)
  return (
    <NativeSelect
      label="Audience"
      description={data?.data.length === 0 ? <NoAudience /> : whoGetsIt}
      data={[
        { value: '', label: 'Choose one' },
        ...options,
        ...(isListed ? [] : [{ value: audienceId, label: audienceId }]),
      ]}
      {...form.getInputProps('audienceId')}
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
        <TextInput
          label="Messages an hour"
          description="At most so many in any 60 minutes. Empty: as fast as they leave."
          inputMode="numeric"
          {...form.getInputProps('throttle')}
        />
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
