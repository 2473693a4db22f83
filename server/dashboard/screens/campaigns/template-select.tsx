import { NativeSelect } from '@mantine/core'
import type { ReactNode } from 'react'
import { useChoices } from '../../api/hooks.ts'
import { newestOffered } from '../../components/newest-offered.ts'
import { ScreenLink } from '../../components/screen-link.tsx'
import { unread } from '../../components/unread.tsx'

type Props = {
  /** The id of a template. Empty: none is chosen. */
  value: string
  error?: ReactNode
  onChange: (templateId: string) => void
}

/** Chooses a template that has a published version. */
export function TemplateSelect({ value: templateId, error, onChange }: Props) {
  const templates = useChoices('GET /v1/templates', { query: {} })
  const options =
    templates.data?.map(({ id, name, publishedVersion }) => ({
      value: id,
      label: publishedVersion === null ? `${name} (not published)` : name,
      disabled: publishedVersion === null,
    })) ?? []
  const isListed = templateId === '' || options.some(({ value }) => value === templateId)
  return (
    <NativeSelect
      label="Template"
      description={
        templates.data?.length === 0 ? (
          <NoTemplate />
        ) : (
          `Its published version when the campaign is sent. ${newestOffered(templates)}`
        )
      }
      data={[
        { value: '', label: 'Choose one' },
        ...options,
        ...(isListed ? [] : [{ value: templateId, label: templateId }]),
      ]}
      value={templateId}
      error={unread(templates, 'The templates') ?? error}
      onChange={(event) => onChange(event.currentTarget.value)}
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
