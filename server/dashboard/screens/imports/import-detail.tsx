import '../../styles/forms.css'
import '../../styles/overview.css'
import { Alert, Button, Progress, Text } from '@mantine/core'
import { useParams } from '@tanstack/react-router'
import { useState } from 'react'
import { useChange, useGet } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import { Confirm } from '../../components/confirm.tsx'
import { Copyable } from '../../components/copyable.tsx'
import { type Column, PlainTable } from '../../components/data-table.tsx'
import { DownloadButton } from '../../components/download-button.tsx'
import { Facts, Section } from '../../components/facts.tsx'
import { Loaded } from '../../components/loaded.tsx'
import { Screen } from '../../components/screen.tsx'
import { ScreenLink } from '../../components/screen-link.tsx'
import { State, wordOf } from '../../components/state.tsx'
import { ExactTime } from '../../components/time.tsx'
import { countOf, hasEnded, type Import, nameOfImport, pollMs } from './import.ts'
import { TopicNames } from './topics-field.tsx'

/** One import: how far it is, and what became of its rows. */
export function ImportDetail() {
  const { id = '' } = useParams({ strict: false })
  const { can } = useScope()
  const [isAsking, setAsking] = useState(false)
  const query = useGet(
    'GET /v1/imports/:id',
    { params: { id } },
    { pollMs: (read) => (read === undefined || hasEnded(read) ? false : pollMs) },
  )
  const { data: read } = query
  return (
    <Screen
      title={read === undefined ? 'Import' : nameOfImport(read)}
      subtitle={read && <State of={read.status} />}
      parent={{ label: 'Imports', path: '/imports' }}
      action={
        read &&
        !hasEnded(read) &&
        can('contacts:write') && (
          <Button variant="default" onClick={() => setAsking(true)}>
            Cancel the import
          </Button>
        )
      }
    >
      <Loaded query={query} what="import">
        {(found) => <Details of={found} />}
      </Loaded>
      {isAsking && <Cancel id={id} onClose={() => setAsking(false)} />}
    </Screen>
  )
}

function Details({ of }: { of: Import }) {
  const { bytes, bytesRead, status, failureReason, failed } = of
  return (
    <>
      {failureReason !== null && (
        <Alert color="red" variant="outline" mb="lg" role="note" title="It could not go on">
          {failureReason}. The rows before are done. Correct the file and import it again: that is harmless.
        </Alert>
      )}
      {!hasEnded(of) && (
        <div className="progress">
          <Progress value={bytes === 0 ? 0 : (100 * bytesRead) / bytes} aria-label="Share of the file that is done" />
          <Text fz="xs" mt={4}>
            {status === 'uploading' && 'The file arrives.'}
            {status === 'waiting' && 'It waits for its turn.'}
            {status === 'running' && `${countOf(of.rowsRead)} rows are done.`}
          </Text>
        </div>
      )}
      <output className="visually-hidden">{hasEnded(of) ? wordOf(status) : ''}</output>
      <dl className="tiles">
        <Tile name="Rows read" count={of.rowsRead} />
        <Tile name="Created" count={of.created} />
        <Tile name="Updated" count={of.updated} />
        <Tile name="Skipped" count={of.skipped} />
        <Tile name="Suppressed" count={of.suppressed} />
        <Tile name="Failed" count={failed} />
      </dl>
      {failed > 0 && <FailedRows of={of} />}
      <Section title="How it is read">
        <Facts of={factsOf(of)} />
      </Section>
      {of.files.length === 0 ? (
        <Section title="Columns">
          <ColumnsOf name="the file" columns={of.columns} />
        </Section>
      ) : (
        <Section title="Files">
          <PlainTable label="Files of the ZIP" rows={of.files} columns={fileColumns} keyOf={({ name }) => name} />
        </Section>
      )}
      {of.files.map(
        (file) =>
          file.readAs !== 'ignored' && (
            <Section key={file.name} title={file.name}>
              <ColumnsOf name={file.name} columns={file.columns} />
            </Section>
          ),
      )}
    </>
  )
}

type ImportedFile = Import['files'][number]

function ColumnsOf({ name, columns: given }: { name: string; columns: ImportedFile['columns'] }) {
  return (
    <PlainTable
      label={`Columns of ${name}`}
      rows={given.map((column, place) => ({ ...column, place }))}
      columns={columns}
      keyOf={({ place }) => String(place)}
    />
  )
}

const wordsOfFiles: Readonly<Record<ImportedFile['readAs'], string>> = {
  contacts: 'Contacts',
  unsubscribe: 'People who unsubscribed: the suppression list',
  hard_bounce: 'Addresses that bounced: the suppression list',
  ignored: 'Left out',
}

const fileColumns: readonly Column<ImportedFile>[] = [
  { header: 'File', cell: ({ name }) => name },
  {
    header: 'Is read as',
    cell: ({ readAs, ignoredBecause }) =>
      ignoredBecause === null ? (
        wordsOfFiles[readAs]
      ) : (
        <span className="dimmed">
          {wordsOfFiles[readAs]}: {ignoredBecause}
        </span>
      ),
  },
]

const columns: readonly Column<Import['columns'][number] & { place: number }>[] = [
  { header: 'Column', cell: ({ column }) => <span title={column}>{column === '' ? '(no name)' : column}</span> },
  {
    header: 'Is read as',
    cell: ({ field }) =>
      field === 'ignore' ? <span className="dimmed">Left out</span> : <span className="mono">{field}</span>,
  },
]

function Tile({ name, count }: { name: string; count: number }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd className="number">{countOf(count)}</dd>
    </div>
  )
}

function factsOf(of: Import): readonly (readonly [string, React.ReactNode])[] {
  return [
    ['Audience', <AudienceName key="audience" id={of.audienceId} />],
    ['People who were there', of.conflict === 'update' ? 'Updated' : 'Left as they are'],
    ['Status of new contacts', wordOf(of.contactStatus)],
    ...(of.topics.length === 0 ? [] : ([['Topics', <TopicNames key="topics" ids={of.topics} />]] as const)),
    ['Events', of.events ? 'Caused for each person' : 'None'],
    ['Separator, encoding', `${wordOf(of.delimiter)}, ${of.encoding}`],
    ['Begun', <ExactTime key="at" at={of.createdAt} />],
    ...(of.endedAt === null ? [] : ([['Ended', <ExactTime key="at" at={of.endedAt} />]] as const)),
    ['ID', <Copyable key="id" label="Copy the ID" value={of.id} />],
  ]
}

/** A link to the audience; its ID where it is deleted or the role does not show it. */
function AudienceName({ id }: { id: string }) {
  const { can } = useScope()
  const { data } = useGet('GET /v1/audiences/:id', { params: { id } }, { enabled: can('audiences:read') })
  return data === undefined ? (
    <span className="mono">{id}</span>
  ) : (
    <ScreenLink to={`/audiences/${id}`}>{data.name}</ScreenLink>
  )
}

function FailedRows({ of: { id, failed } }: { of: Import }) {
  return (
    <Section
      title={failed === 1 ? '1 row was left out' : `${countOf(failed)} rows were left out`}
      action={
        <DownloadButton
          label="Download the failed rows"
          path={`/v1/imports/${id}/failed-rows`}
          fileName={`failed-rows-${id}.csv`}
          isPrimary
        />
      }
    >
      <Text c="dimmed">
        A CSV file with their cells, their numbers and the reasons. Correct them and import that file: rows that are
        there already do no harm.
      </Text>
    </Section>
  )
}

function Cancel({ id, onClose }: { id: string; onClose: () => void }) {
  const cancel = useChange('POST /v1/imports/:id/cancel')
  return (
    <Confirm
      title="Cancel the import?"
      action="Cancel the import"
      isRunning={cancel.isPending}
      error={cancel.error}
      onClose={onClose}
      onConfirm={() => cancel.mutate({ params: { id }, body: {} }, { onSuccess: onClose })}
    >
      No more rows are read. The people of the rows before stay in the audience.
    </Confirm>
  )
}
