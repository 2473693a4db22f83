import { Stack } from '@mantine/core'
import type { ReactNode } from 'react'
import { type CodeFault, CodeField } from './code-field.tsx'
import { type ContentFormat, ContentFormatSwitch, firstMjml } from './content-format.tsx'

/** A message as it is written: HTML or MJML, whichever `format` says. */
export type Markup = { format: ContentFormat; html: string; mjml: string }

type Props = {
  value: Markup
  onChange: (value: Markup) => void
  /** What Liquid stands for here. */
  description: string
  errors: { html?: ReactNode; mjml?: ReactNode }
  faults: { html: readonly CodeFault[]; mjml: readonly CodeFault[] }
  isReadOnly?: boolean
}

/** The code of a message, with its numbered lines and faults. */
export function MarkupField({ value, onChange, description, errors, faults, isReadOnly = false }: Props) {
  const { format } = value
  return (
    <Stack gap="xs" align="stretch">
      <div>
        <ContentFormatSwitch
          value={format}
          isReadOnly={isReadOnly}
          onChange={(chosen) => {
            const begins = chosen === 'mjml' && value.mjml === ''
            onChange({ ...value, format: chosen, ...(begins && { mjml: firstMjml }) })
          }}
        />
      </div>
      <CodeField
        key={format}
        label={format === 'mjml' ? 'MJML' : 'HTML'}
        description={format === 'mjml' ? `${description} Between elements, Liquid stands in mj-raw.` : description}
        rows={18}
        isReadOnly={isReadOnly}
        value={value[format]}
        error={errors[format] ?? null}
        faults={faults[format]}
        onChange={(code) => onChange({ ...value, [format]: code })}
      />
    </Stack>
  )
}

/** Returns how stored content was written. */
export function markupWritten({ html, mjml }: { html: string | null; mjml: string | null }): Markup {
  return mjml === null ? { format: 'html', html: html ?? '', mjml: '' } : { format: 'mjml', html: html ?? '', mjml }
}

/** Returns the markup as the API takes it: one of the two. */
export function bodyOfMarkup({ format, html, mjml }: Markup): { html: string | null } | { mjml: string } {
  if (format === 'mjml' && mjml !== '') return { mjml }
  return { html: format === 'mjml' || html === '' ? null : html }
}
