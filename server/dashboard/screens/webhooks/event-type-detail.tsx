import { useParams } from '@tanstack/react-router'
import type { Result } from '../../api/client.ts'
import { useGet } from '../../api/hooks.ts'
import { CodeSection } from '../../components/code-section.tsx'
import { type Column, PlainTable } from '../../components/data-table.tsx'
import { Empty } from '../../components/empty.tsx'
import { Section } from '../../components/facts.tsx'
import { Loaded } from '../../components/loaded.tsx'
import { Marked } from '../../components/marked.tsx'
import { Screen } from '../../components/screen.tsx'
import { type EventField, fieldsOf } from './event-fields.ts'

type EventType = Result<'GET /v1/event-types'>['data'][number]

const columns: readonly Column<EventField>[] = [
  {
    header: 'Field',
    width: '34%',
    cell: ({ name, isRequired }) => (
      <span className="mono">
        {name}
        {!isRequired && <span className="dimmed"> · may be missing</span>}
      </span>
    ),
    phoneLine: ({ type, description }) => (
      <>
        <span className="mono">{type}</span> <Marked>{description}</Marked>
      </>
    ),
  },
  { header: 'Type', isMinor: true, cell: ({ type }) => <span className="mono">{type}</span> },
  { header: 'Meaning', width: '40%', isMinor: true, cell: ({ description }) => <Marked>{description}</Marked> },
]

/** One type of event: its fields, an example and its JSON Schema. */
export function EventTypeDetail() {
  const { id = '' } = useParams({ strict: false })
  const query = useGet('GET /v1/event-types', {})
  return (
    <Screen title={id} parent={{ label: 'Event types', path: '/event-types' }}>
      <Loaded query={query} what="event type">
        {({ data }) => {
          const found = data.find(({ type }) => type === id)
          return found === undefined ? (
            <Empty title="There is no such event type">The address is mistyped.</Empty>
          ) : (
            <Details of={found} />
          )
        }}
      </Loaded>
    </Screen>
  )
}

function Details({ of: { type, meaning, shared, schema, example } }: { of: EventType }) {
  const exampleText = JSON.stringify(example, null, 2)
  const schemaText = JSON.stringify(schema, null, 2)
  return (
    <>
      <p className="lead">
        {meaning}.{shared && ' Webhooks of live and of test mode both receive it.'}
      </p>
      <Section title="Fields">
        <div className="wrapped">
          <PlainTable
            label={`Fields of ${type}`}
            rows={fieldsOf(schema)}
            columns={columns}
            keyOf={({ name }) => name}
          />
        </div>
      </Section>
      <CodeSection title="Example" code={exampleText} copyLabel="Copy the example" />
      <CodeSection title="JSON Schema" code={schemaText} copyLabel="Copy the schema" />
    </>
  )
}
