import { SegmentedControl, Textarea, TextInput } from '@mantine/core'
import type { UseFormReturnType } from '@mantine/form'
import { useScope } from '../../api/scope.tsx'
import { CodeField } from '../../components/code-field.tsx'
import { MarkupField } from '../../components/markup-field.tsx'
import type { TemplatePreview } from '../templates/template.ts'
import type { CampaignValues } from './campaign-values.ts'
import { FallbacksNote } from './fallbacks-note.tsx'
import { TemplateSelect } from './template-select.tsx'

type Props = {
  form: UseFormReturnType<CampaignValues>
  /** The errors that the preview found. */
  faults: TemplatePreview['errors']
}

/** The message: written here, or that of a template. */
export function ContentFields({ form, faults }: Props) {
  const { can } = useScope()
  const isOwn = form.values.source === 'own'
  return (
    <>
      {can('templates:read') && (
        <SegmentedControl
          size="xs"
          aria-label="Message"
          data={[
            { value: 'own', label: 'Write it here' },
            { value: 'template', label: 'Use a template' },
          ]}
          {...form.getInputProps('source')}
        />
      )}
      {!isOwn && (
        <TemplateSelect
          value={form.values.templateId}
          error={form.errors.templateId}
          onChange={(templateId) => form.setFieldValue('templateId', templateId)}
        />
      )}
      <TextInput
        label="Subject"
        description={
          isOwn
            ? 'May have Liquid: {{ contact.firstName | default: "there" }}.'
            : 'Empty: that of the template. May have Liquid.'
        }
        required={isOwn}
        {...form.getInputProps('subject')}
        error={form.errors.subject ?? faults.find(({ part }) => part === 'subject')?.message}
      />
      {isOwn && <OwnContent form={form} faults={faults} />}
      <Textarea
        label="Values"
        description={
          'For the variables of the message, the same for all people, as JSON: { "season": "Spring" }. May be empty.'
        }
        className="mono-input"
        autosize
        minRows={1}
        maxRows={10}
        spellCheck={false}
        {...form.getInputProps('variables')}
      />
    </>
  )
}

function OwnContent({ form, faults }: Props) {
  const { format, html, mjml } = form.values
  const of = (part: TemplatePreview['errors'][number]['part']) => faults.filter((fault) => fault.part === part)
  return (
    <>
      <TextInput
        label="Preheader"
        description="What mail programs show beside the subject. May be empty."
        {...form.getInputProps('preheader')}
        error={form.errors.preheader ?? of('preheader')[0]?.message}
      />
      <MarkupField
        description="Liquid: contact.firstName, contact.lastName, contact.email, account.name, campaign.name and unsubscribeUrl."
        value={{ format, html, mjml }}
        errors={{ html: form.errors.html, mjml: form.errors.mjml }}
        faults={{ html: of('html'), mjml: of('mjml') }}
        onChange={(markup) => form.setValues(markup)}
      />
      <CodeField
        label="Text"
        description="For mail programs that show no HTML. Empty: it is made from the HTML."
        rows={6}
        value={form.values.text}
        error={form.errors.text}
        faults={of('text')}
        onChange={(value) => form.setFieldValue('text', value)}
      />
      <FallbacksNote fallbacks={form.values.fallbacks} />
    </>
  )
}
