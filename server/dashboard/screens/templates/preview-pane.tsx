import { Text, Textarea } from '@mantine/core'
import { IconAlertTriangle } from '@tabler/icons-react'
import { ErrorNotice } from '../../components/error-notice.tsx'
import { Loading } from '../../components/loaded.tsx'
import { Marked } from '../../components/marked.tsx'
import { MessageViews } from '../emails/message-views.tsx'
import type { TemplatePreview } from './template.ts'
import type { Rendering } from './use-rendering.ts'

/** The preview of the draft: subject, message and the findings of the checks. */
export function PreviewPane({ rendering }: { rendering: Rendering }) {
  const { data, error, values, setValues, isReadable, retry } = rendering
  return (
    <section className="aside" aria-label="Preview">
      {error !== null && <ErrorNotice error={error} onRetry={retry} />}
      {error === null && data === undefined && <Loading />}
      {error === null && data !== undefined && <Rendered preview={data} />}
      <Textarea
        mt="md"
        label="Values for the preview"
        description={'As JSON: { "firstName": "Ada" }. Empty: fallbacks and samples.'}
        className="mono-input"
        autosize
        minRows={2}
        maxRows={10}
        spellCheck={false}
        value={values}
        error={isReadable ? undefined : 'Must be an object in JSON'}
        onChange={(event) => setValues(event.currentTarget.value)}
      />
    </section>
  )
}

type RenderedProps = {
  preview: TemplatePreview
  /** Whether it is of a published version, which has no fields beside it. Default: no. */
  isPublished?: boolean
}

/** A rendered template, or the errors that prevent it. */
export function Rendered({ preview, isPublished = false }: RenderedProps) {
  const { subject, html, text, errors, checks } = preview
  if (errors.length > 0) {
    return (
      <>
        <Text fw={600}>
          {errors.length === 1
            ? 'A fault keeps it from being rendered'
            : `${errors.length} faults keep it from being rendered`}
        </Text>
        <Text c="dimmed">
          {isPublished
            ? 'Correct it in the draft, and publish that.'
            : 'Each stands at its field, with its line. The preview comes back once nothing is wrong.'}
        </Text>
        <ul className="code-faults">
          {errors.map(({ part, line, message }) => (
            <li key={`${part} ${line} ${message}`}>
              <span>{message}</span>
            </li>
          ))}
        </ul>
      </>
    )
  }
  return (
    <>
      <MessageViews subject={subject ?? ''} html={html} text={text} />
      {checks.length > 0 && (
        <ul className="checks" aria-label="What is not good about it">
          {checks.map(({ code, line, message }) => (
            <li key={`${code} ${line}`}>
              <IconAlertTriangle size={14} aria-hidden />
              <span>
                {line !== null && `Line ${line} of the result: `}
                <Marked>{message}</Marked>
              </span>
            </li>
          ))}
        </ul>
      )}
    </>
  )
}
