import { Button, Fieldset, Group, NativeSelect, Stack, TextInput } from '@mantine/core'
import type { ReactNode } from 'react'
import { useScope } from '../../api/scope.tsx'
import { CodeField } from '../../components/code-field.tsx'
import { MarkupField } from '../../components/markup-field.tsx'
import type { VariantValues } from './ab-test-values.ts'
import { FallbacksNote } from './fallbacks-note.tsx'
import { TemplateSelect } from './template-select.tsx'

type VariantProps = {
  /** From 1. */
  number: number
  variant: VariantValues
  /** Returns what is wrong with a field, by its path in the variant. */
  errorOf: (field: string) => ReactNode
  onChange: (changes: Partial<VariantValues>) => void
  onRemove?: () => void
}

/** A variant of the message: what it does not have is that of the campaign. */
export function VariantFields({ number, variant, errorOf, onChange, onRemove }: VariantProps) {
  const { can } = useScope()
  const { name, subject, source, templateId } = variant
  return (
    <Fieldset legend={`Variant ${number}`}>
      <Stack>
        <TextInput
          label="Name"
          required
          maxLength={50}
          value={name}
          error={errorOf('name')}
          onChange={(event) => onChange({ name: event.currentTarget.value })}
        />
        <TextInput
          label="Subject"
          description="Empty: that of the campaign."
          value={subject}
          error={errorOf('subject')}
          onChange={(event) => onChange({ subject: event.currentTarget.value })}
        />
        <NativeSelect
          label="Message"
          data={[
            { value: 'campaign', label: 'That of the campaign' },
            { value: 'own', label: 'Written here' },
            ...(can('templates:read') || source === 'template' ? [{ value: 'template', label: 'A template' }] : []),
          ]}
          value={source}
          onChange={(event) => onChange({ source: event.currentTarget.value as VariantValues['source'] })}
        />
        {source === 'own' && <OwnMessage variant={variant} errorOf={errorOf} onChange={onChange} />}
        {source === 'template' && (
          <TemplateSelect
            value={templateId}
            error={errorOf('templateId')}
            onChange={(chosen) => onChange({ templateId: chosen })}
          />
        )}
        {onRemove && (
          <Group>
            <Button variant="default" size="xs" onClick={onRemove}>
              Remove variant {number}
            </Button>
          </Group>
        )}
      </Stack>
    </Fieldset>
  )
}

function OwnMessage({ variant, errorOf, onChange }: Pick<VariantProps, 'variant' | 'errorOf' | 'onChange'>) {
  const { preheader, format, html, mjml, text } = variant
  const ofContent = errorOf('content')
  return (
    <>
      <TextInput
        label="Preheader"
        value={preheader}
        error={errorOf('content.preheader')}
        onChange={(event) => onChange({ preheader: event.currentTarget.value })}
      />
      <MarkupField
        description="Liquid, as in the message of the campaign."
        value={{ format, html, mjml }}
        errors={{ html: errorOf('content.html') ?? ofContent, mjml: errorOf('content.mjml') ?? ofContent }}
        faults={{ html: [], mjml: [] }}
        onChange={onChange}
      />
      <CodeField
        label="Text"
        description="Empty: it is made from the HTML."
        rows={6}
        value={text}
        error={errorOf('content.text')}
        faults={[]}
        onChange={(value) => onChange({ text: value })}
      />
      <FallbacksNote fallbacks={variant.fallbacks} />
    </>
  )
}
