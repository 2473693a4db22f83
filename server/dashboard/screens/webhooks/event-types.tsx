import type { Result } from '../../api/client.ts'
import { useGet } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import { type Column, PlainTable } from '../../components/data-table.tsx'
import { ErrorNotice } from '../../components/error-notice.tsx'
import { Section } from '../../components/facts.tsx'
import { Screen } from '../../components/screen.tsx'
import { ScreenLink } from '../../components/screen-link.tsx'
import { ReceiverProgram } from './receiver-program.tsx'
import { isOffered } from './webhook-fields.tsx'

type EventType = Result<'GET /v1/event-types'>['data'][number]

const columns: readonly Column<EventType>[] = [
  {
    header: 'Type',
    cell: ({ type }) => (
      <ScreenLink to={`/event-types/${type}`}>
        <span className="mono">{type}</span>
      </ScreenLink>
    ),
    phoneLine: ({ meaning }) => meaning,
  },
  { header: 'When it is sent', isMinor: true, cell: ({ meaning }) => meaning },
]

/** Every type of event that a webhook can receive. */
export function EventTypes() {
  const { portal } = useScope()
  const { data, error, refetch } = useGet('GET /v1/event-types', {})
  return (
    <Screen
      title="Event types"
      subtitle="What a webhook can receive, with the fields and an example of each."
      {...(portal === null && { parent: { label: 'Webhooks', path: '/webhooks' } })}
    >
      {error !== null && data === undefined ? (
        <ErrorNotice error={error} onRetry={() => void refetch()} />
      ) : (
        <PlainTable
          label="Event types"
          rows={data?.data.filter(({ type }) => isOffered(portal, type))}
          columns={columns}
          keyOf={({ type }) => type}
        />
      )}
      {/* Below a table that is read, so that it keeps its place. */}
      {(data !== undefined || error !== null) && (
        <Section title="A program that receives them">
          <p className="lead">It checks signatures, refuses replays and handles each event once.</p>
          <ReceiverProgram url={null} />
        </Section>
      )}
    </Screen>
  )
}
