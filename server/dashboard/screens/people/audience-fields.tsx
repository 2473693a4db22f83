import { Checkbox, Textarea, TextInput } from '@mantine/core'
import type { UseFormReturnType } from '@mantine/form'
import type { Audience } from './audience.ts'

/** An audience as it is typed. */
export type AudienceValues = {
  name: string
  description: string
  asks: boolean
  from: string
  subject: string
  text: string
}

/** Returns what a form shows first. Null: of a new audience. */
export function audienceValues(
  audience: Pick<Audience, 'name' | 'description' | 'doubleOptIn'> | null,
): AudienceValues {
  const { name = '', description, doubleOptIn = null } = audience ?? {}
  return {
    name,
    description: description ?? '',
    asks: doubleOptIn !== null,
    from: doubleOptIn?.from ?? '',
    subject: doubleOptIn?.subject ?? '',
    text: doubleOptIn?.text ?? '',
  }
}

/** Returns the setting that is typed, for the API. */
export function doubleOptInOf({ asks, from, subject, text }: AudienceValues): Audience['doubleOptIn'] {
  return asks ? { from, subject: subject === '' ? null : subject, text: text === '' ? null : text } : null
}

/** The fields whose path in the body is another. */
export const audiencePaths = {
  'doubleOptIn.from': 'from',
  'doubleOptIn.subject': 'subject',
  'doubleOptIn.text': 'text',
} as const

type Props = {
  form: UseFormReturnType<AudienceValues>
  /** Whether people can be asked to confirm, or no more: a test key changes that for no audience that is there. */
  mayChangeAsking: boolean
}

/** The fields of an audience. */
export function AudienceFields({ form, mayChangeAsking }: Props) {
  const { asks } = form.values
  return (
    <>
      <TextInput label="Name" required data-autofocus {...form.getInputProps('name')} />
      <Textarea label="Description" {...form.getInputProps('description')} />
      <Checkbox
        label="People confirm before they get anything (double opt-in)"
        description={
          mayChangeAsking
            ? 'Who is added gets an email with a link, and is pending until they press the button behind it.'
            : 'To change this, switch to live mode.'
        }
        disabled={!mayChangeAsking}
        {...form.getInputProps('asks', { type: 'checkbox' })}
      />
      {asks && (
        <>
          <TextInput
            label="From"
            description="At a verified domain, such as Acme <news@example.com>"
            required
            disabled={!mayChangeAsking}
            {...form.getInputProps('from')}
          />
          <TextInput
            label="Subject"
            placeholder="Please confirm your subscription"
            disabled={!mayChangeAsking}
            {...form.getInputProps('subject')}
          />
          <Textarea
            label="Text"
            description="What the email says before its button"
            autosize
            minRows={2}
            disabled={!mayChangeAsking}
            {...form.getInputProps('text')}
          />
        </>
      )}
    </>
  )
}
