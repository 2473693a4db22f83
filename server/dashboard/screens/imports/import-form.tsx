import { Alert, Button, Group, NativeSelect, Progress, Radio, Stack, Switch, Text } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useEffect, useRef, useState } from 'react'
import {
  type DelimiterName,
  type ImportEncoding,
  importLimits,
  mapColumns,
  suppressionOf,
} from '../../../../contract/import-files.ts'
import { ApiError } from '../../api/client.ts'
import { useGet } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import { uploadImport } from '../../api/upload.ts'
import { ErrorNotice } from '../../components/error-notice.tsx'
import { Section } from '../../components/facts.tsx'
import { Loading } from '../../components/loaded.tsx'
import { contactStatusOptions } from '../people/person.ts'
import { ColumnTable } from './column-table.tsx'
import type { CsvBeginning } from './read-file.ts'
import { TopicsField } from './topics-field.tsx'

type Props = {
  file: File
  /** Null: it is a ZIP, whose files the service reads. */
  beginning: CsvBeginning | null
  /** Empty: none is chosen yet. */
  audienceId: string
  /** Chosen by the reader. Null: it is detected. */
  encoding: ImportEncoding | null
  delimiter: DelimiterName | null
}

/** The form of an import: the meaning of each column of a CSV file, the options, and the button that starts it. */
export function ImportForm({ file, beginning, audienceId, encoding, delimiter }: Props) {
  const { mode } = useScope()
  const { names, rows } = beginning ?? { names: [], rows: [] }
  const { data: properties, error, refetch } = useGet('GET /v1/contact-properties', {})
  const [mapping, setMapping] = useState<Readonly<Record<string, string>>>({})
  const [conflict, setConflict] = useState<'skip' | 'update'>('skip')
  const [status, setStatus] = useState('active')
  const [topics, setTopics] = useState<readonly string[]>([])
  const [hasEvents, setEvents] = useState(true)
  const [isAsked, setAsked] = useState(false)
  const sending = useUpload()
  if (error !== null) return <ErrorNotice error={error} onRetry={() => void refetch()} />
  if (properties === undefined) return <Loading />
  const propertyKeys = properties.data.map(({ key }) => key)
  const columns = mapColumns(names, { mapping, propertyKeys })
  const faults = faultsOf({ columns: beginning === null ? null : columns, audienceId, topics })
  const kind = suppressionOf(names)

  function start(): void {
    setAsked(true)
    if (faults.length > 0) return
    sending.start(file, {
      audienceId,
      conflict,
      status,
      ...(topics.length > 0 && { topics: topics.join(',') }),
      events: String(hasEvents),
      ...(file.name !== '' && { fileName: [...file.name].slice(0, 200).join('') }),
      ...(delimiter !== null && { delimiter }),
      ...(encoding !== null && { encoding }),
      ...Object.fromEntries(Object.entries(mapping).map(([column, field]) => [`columns[${column}]`, field])),
    })
  }

  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        start()
      }}
    >
      {beginning === null ? (
        <ZipNote />
      ) : (
        <Section title="Columns">
          {kind !== null && (
            <Alert color="gray" mb="md" role="note">
              {kind === 'unsubscribe'
                ? 'Mailchimp exports people who unsubscribed like this.'
                : 'Mailchimp exports addresses that bounced like this.'}{' '}
              They go to the suppression list and into no audience.
              {mode === 'test' && ' Test mode cannot do that: all rows would fail.'}
            </Alert>
          )}
          <ColumnTable
            columns={columns}
            rows={rows}
            propertyKeys={propertyKeys}
            onChoose={(column, field) => setMapping({ ...mapping, [column]: field })}
          />
        </Section>
      )}
      <Section title="People">
        <Stack maw={560}>
          <Radio.Group
            label="People who are in the audience already"
            value={conflict}
            onChange={(value) => setConflict(value === 'update' ? 'update' : 'skip')}
          >
            <Stack gap="xs" mt={6}>
              <Radio value="skip" label="Leave them as they are" />
              <Radio value="update" label="Update names and properties; an empty cell changes nothing" />
            </Stack>
          </Radio.Group>
          <NativeSelect
            label="Status of new contacts"
            description="A person who unsubscribed stays so, whatever it is."
            value={status}
            onChange={(event) => setStatus(event.currentTarget.value)}
            data={contactStatusOptions}
          />
          <TopicsField value={topics} onChange={setTopics} />
          <Switch
            label="Cause events"
            description="subscriber.added, contact.created and contact.updated for each person, which webhooks receive."
            checked={hasEvents}
            onChange={(event) => setEvents(event.currentTarget.checked)}
          />
        </Stack>
      </Section>
      <div className="form-end">
        {isAsked &&
          faults.map((fault) => (
            <Alert key={fault} color="red" variant="outline" role="alert">
              {fault}
            </Alert>
          ))}
        {sending.error !== null && <ErrorNotice error={sending.error} />}
        {sending.share !== null && (
          <div>
            <Progress value={100 * sending.share} aria-label="Share of the file that was sent" />
            <Text fz="xs" mt={4} aria-live="polite">
              {sending.share < 1
                ? `${Math.floor(100 * sending.share)} % sent. Keep this page open.`
                : 'Sent. It is being stored …'}
            </Text>
          </div>
        )}
        <Group>
          <Button type="submit" loading={sending.share !== null}>
            Begin the import
          </Button>
          {sending.share !== null && (
            <Button variant="default" onClick={sending.stop}>
              Stop sending
            </Button>
          )}
        </Group>
      </div>
    </form>
  )
}

const noAudience = 'Choose the audience that the people are put into.'

function ZipNote() {
  const { mode } = useScope()
  return (
    <Section title="Files">
      <Alert color="gray" role="note">
        Each CSV file of the ZIP is read by the names of its columns; the import shows afterwards as what. Of an export
        of Mailchimp, people who unsubscribed or whose addresses bounced go to the suppression list and into no
        audience, also where another file has them.
        {mode === 'test' && ' Test mode cannot do that: a ZIP with such people is refused.'}
      </Alert>
    </Section>
  )
}

type Chosen = {
  /** Null: of a ZIP, which the service judges. */
  columns: readonly { field: string }[] | null
  audienceId: string
  topics: readonly string[]
}

function faultsOf({ columns, audienceId, topics }: Chosen): string[] {
  const faults = [
    ...(audienceId === '' ? [noAudience] : []),
    ...(topics.length > importLimits.topics ? [`Choose at most ${importLimits.topics} topics.`] : []),
  ]
  if (columns === null) return faults
  const used = columns.map(({ field }) => field).filter((field) => field !== 'ignore')
  const twice = used.find((field, index) => used.indexOf(field) !== index)
  return [
    ...faults,
    ...(used.includes('email') ? [] : ['Say which column has the email addresses.']),
    ...(twice === undefined ? [] : [`Two columns are “${twice}”: only one can be.`]),
  ]
}

function useUpload() {
  const { accountId, mode, path, onRefused } = useScope()
  const client = useQueryClient()
  const navigate = useNavigate()
  const [share, setShare] = useState<number | null>(null)
  const [error, setError] = useState<ApiError | null>(null)
  const stopping = useRef<AbortController | null>(null)
  // A file is not sent on behind the back of a reader who has left.
  useEffect(() => () => stopping.current?.abort(), [])

  async function run(file: File, query: Readonly<Record<string, string>>): Promise<void> {
    const controller = new AbortController()
    stopping.current = controller
    setShare(0)
    setError(null)
    try {
      const { signal } = controller
      const { id } = await uploadImport({ scope: { accountId, mode }, query, file, signal, onProgress: setShare })
      await client.invalidateQueries({ queryKey: [accountId] })
      await navigate({ to: path(`/imports/${id}`) })
    } catch (thrown) {
      if (controller.signal.aborted) return
      if (!(thrown instanceof ApiError)) throw thrown
      onRefused(thrown)
      setError(thrown)
    } finally {
      setShare(null)
    }
  }

  return {
    /** Null: nothing is being sent. */
    share,
    error,
    start: (file: File, query: Readonly<Record<string, string>>) => void run(file, query),
    stop: () => stopping.current?.abort(),
  }
}
