import { NativeSelect } from '@mantine/core'
import type { ReactNode } from 'react'
import { useGet } from '../../api/hooks.ts'
import { ScreenLink } from '../../components/screen-link.tsx'
import { unread } from '../../components/unread.tsx'

/** As many templates as one page of the API has. */
const offered = 100

type Props = {
  /** The id of a template. Empty: none is chosen. */
  value: string
  error?: ReactNode
  onChange: (templateId: string) => void
}

/** Chooses a template that has a published version. */
export function TemplateSelect({ value: templateId, error, onChange }: Props) {
  const query = useGet('GET /v1/templates', { query: { limit: offered } })
  const { data } = query
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
      value={templateId}
      error={unread(query, 'The templates') ?? error}
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
