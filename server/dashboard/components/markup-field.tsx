import { Stack } from '@mantine/core'
import { lazy, type ReactNode, Suspense, useState } from 'react'
import { blocksOfMjml, firstMjml } from './blocks/mail-blocks.ts'
import { type CodeFault, CodeField } from './code-field.tsx'
import { Confirm } from './confirm.tsx'
import { type ContentEditor, ContentEditorSwitch, type ContentFormat } from './content-format.tsx'
import { Loading } from './loaded.tsx'

const BlocksField = lazy(async () => ({ default: (await import('./blocks/blocks-field.tsx')).BlocksField }))

/** A message as it is written: HTML or MJML, whichever `format` says. */
export type Markup = { format: ContentFormat; html: string; mjml: string }

type Props = {
  value: Markup
  onChange: (value: Markup) => void
  /** The help text on the use of Liquid here. */
  description: string
  errors: { html?: ReactNode; mjml?: ReactNode }
  faults: { html: readonly CodeFault[]; mjml: readonly CodeFault[] }
  isReadOnly?: boolean
}

/** A message as blocks or as code. Code has numbered lines. Faults stand at their block or line. */
export function MarkupField({ value, onChange, description, errors, faults, isReadOnly = false }: Props) {
  const { format } = value
  const [isOfBlocks, setOfBlocks] = useState(() => format === 'mjml' && blocksOfMjml(value.mjml) !== null)
  /** The editor that was chosen, while a dialog asks whether it may replace the HTML. */
  const [asked, setAsked] = useState<ContentEditor | null>(null)
  const editor: ContentEditor = format === 'mjml' && isOfBlocks ? 'blocks' : format

  function edit(chosen: ContentEditor): void {
    setAsked(null)
    setOfBlocks(chosen === 'blocks')
    const begins = chosen !== 'html' && value.mjml === ''
    onChange({ ...value, format: chosen === 'html' ? 'html' : 'mjml', ...(begins && { mjml: firstMjml }) })
  }

  function choose(chosen: ContentEditor): void {
    const replaces = chosen !== 'html' && value.mjml === '' && value.html.trim() !== ''
    if (replaces) setAsked(chosen)
    else edit(chosen)
  }

  return (
    <Stack gap="xs" align="stretch">
      <div>
        <ContentEditorSwitch value={editor} isReadOnly={isReadOnly} onChange={choose} />
      </div>
      {asked !== null && (
        <Confirm
          title="Replace the HTML?"
          action="Replace it"
          isRunning={false}
          error={null}
          onClose={() => setAsked(null)}
          onConfirm={() => edit(asked)}
        >
          A new message takes its place when the draft is saved. You can go back to the HTML until you leave this
          screen.
        </Confirm>
      )}
      {editor === 'blocks' ? (
        <Suspense fallback={<Loading />}>
          <BlocksField
            value={value.mjml}
            description={description}
            isReadOnly={isReadOnly}
            error={errors.mjml ?? null}
            faults={faults.mjml}
            onChange={(mjml) => onChange({ ...value, mjml })}
          />
        </Suspense>
      ) : (
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
      )}
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
