import { Button } from '@mantine/core'
import { useRef, useState } from 'react'
import type { Result } from '../../api/client.ts'
import { useGet } from '../../api/hooks.ts'
import { type Column, PlainTable } from '../../components/data-table.tsx'
import { ErrorNotice } from '../../components/error-notice.tsx'
import { Section } from '../../components/facts.tsx'
import { State } from '../../components/state.tsx'
import { Time } from '../../components/time.tsx'
import { PublishedVersion } from './published-version.tsx'
import type { Template } from './template.ts'

type Version = Result<'GET /v1/templates/:id/versions'>['data'][number]

/** Versions that are shown before the reader asks for all. */
const firstRows = 5

/** The versions of a template: when each was published, and which one emails get. */
export function TemplateVersions({ template }: { template: Template }) {
  const { publishedVersion } = template
  const [isLooking, setLooking] = useState(false)
  if (publishedVersion === null) {
    return (
      <Section title="Versions">
        <p className="dimmed">None yet. Emails can be sent with it once the draft is published.</p>
      </Section>
    )
  }
  return (
    <Section
      title="Versions"
      action={
        <Button variant="default" size="xs" onClick={() => setLooking(true)}>
          Show version {publishedVersion}
        </Button>
      }
    >
      <VersionTable id={template.id} publishedVersion={publishedVersion} />
      {isLooking && <PublishedVersion id={template.id} version={publishedVersion} onClose={() => setLooking(false)} />}
    </Section>
  )
}

function VersionTable({ id, publishedVersion }: { id: string; publishedVersion: number }) {
  const { data, error, refetch } = useGet('GET /v1/templates/:id/versions', { params: { id } })
  const [isWhole, setWhole] = useState(false)
  const frame = useRef<HTMLElement>(null)
  const columns: readonly Column<Version>[] = [
    { header: 'Version', width: '90px', cell: ({ version }) => version },
    {
      header: 'Subject',
      cell: ({ subject }) => <span title={subject}>{subject}</span>,
      phoneLine: ({ publishedAt }) => <Time at={publishedAt} />,
    },
    {
      header: 'State',
      width: '130px',
      cell: ({ version }) => <State of={version === publishedVersion ? 'published' : 'replaced'} />,
    },
    {
      header: 'Published',
      width: '140px',
      align: 'right',
      isMinor: true,
      cell: ({ publishedAt }) => <Time at={publishedAt} />,
    },
  ]
  if (data === undefined && error !== null) return <ErrorNotice error={error} onRetry={() => void refetch()} />
  const versions = data?.data
  const hasMore = !isWhole && versions !== undefined && versions.length > firstRows
  function showAll(): void {
    setWhole(true)
    // The button goes.
    frame.current?.focus({ preventScroll: true })
  }
  return (
    <section ref={frame} tabIndex={-1} aria-label="Versions of the template">
      <PlainTable
        label="Versions"
        rows={hasMore ? versions.slice(0, firstRows) : versions}
        columns={columns}
        keyOf={({ version }) => String(version)}
      />
      {hasMore && (
        <Button variant="default" mt="md" onClick={showAll}>
          Show all {versions.length}
        </Button>
      )}
    </section>
  )
}
