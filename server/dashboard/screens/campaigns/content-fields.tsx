import { NativeSelect, SegmentedControl, Textarea, TextInput } from '@mantine/core'
import type { UseFormReturnType } from '@mantine/form'
import { useGet } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import { CodeField } from '../../components/code-field.tsx'
import { MarkupField } from '../../components/markup-field.tsx'
import { ScreenLink } from '../../components/screen-link.tsx'
import type { TemplatePreview } from '../templates/template.ts'
import type { CampaignValues } from './campaign-values.ts'

type Props = {
  form: UseFormReturnType<CampaignValues>
  /** What the preview found wrong. */
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
      {!isOwn && <TemplateField form={form} />}
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
    </>
  )
}

/** As many templates as one page of the API has. */
const offered = 100

function TemplateField({ form }: Pick<Props, 'form'>) {
  const { data } = useGet('GET /v1/templates', { query: { limit: offered } })
  const { templateId } = form.values
  const options =
    data?.data.map(({ id, name, publishedVersion }) => ({
      value: id,
      label: publishedVersion === null ? `${name} (not published)` : name,
      disabled: publishedVersion === null,
    })) ?? []
  const isListed = templateId === '' || options.some(({ value }) => value === templateId)
  const more = data?.nextCursor == null ? '' : ` The newest ${offered} are offered.`
  return (
    <NativeSelect
      label="Template"
      description={data?.data.length === 0 ? <NoTemplate /> : `Its published version when the campaign is sent.${more}`}
      data={[
        { value: '', label: 'Choose one' },
        ...options,
        ...(isListed ? [] : [{ value: templateId, label: templateId }]),
      ]}
      {...form.getInputProps('templateId')}
    />
  )
}

function NoTemplate() {
  return (
    <>
      There is no template yet. <ScreenLink to="/templates">Create one</ScreenLink> and publish it.
    </>
  )
}
