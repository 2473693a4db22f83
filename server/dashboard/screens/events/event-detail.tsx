import { useParams } from '@tanstack/react-router'
import { useGet } from '../../api/hooks.ts'
import { CodeBlock } from '../../components/code-block.tsx'
import { Copyable } from '../../components/copyable.tsx'
import { Facts, Section } from '../../components/facts.tsx'
import { Loaded } from '../../components/loaded.tsx'
import { Screen } from '../../components/screen.tsx'
import { ScreenLink } from '../../components/screen-link.tsx'
import { ExactTime } from '../../components/time.tsx'
import { summaryOf } from './event-summary.ts'

/** One event, as it was pushed. */
export function EventDetail() {
  const { id = '' } = useParams({ strict: false })
  const query = useGet('GET /v1/events/:id', { params: { id } })
  const title = query.data === undefined ? 'Event' : summaryOf(query.data).type
  return (
    <Screen title={title} parent={{ label: 'Events', path: '/events' }}>
      <Loaded query={query} what="event">
        {(event) => <Details event={event} />}
      </Loaded>
    </Screen>
  )
}

function Details({ event }: { event: Readonly<Record<string, unknown>> }) {
  const { id, at, about, objects } = summaryOf(event)
  // It is in a header of deliveries, and not in their body.
  const { mode: _mode, ...pushed } = event
  return (
    <>
      <Facts
        of={[
          ['When', <ExactTime key="at" at={at} />],
          ...(about === '' ? [] : ([['About', about]] as const)),
          ...objects.map(
            (object) =>
              [
                object.label,
                <ScreenLink key="object" to={object.path}>
                  {object.id}
                </ScreenLink>,
              ] as const,
          ),
          ['ID', <Copyable key="id" label="Copy the ID" value={id} />],
        ]}
      />
      <Section title="Body">
        <CodeBlock>{JSON.stringify(pushed, null, 2)}</CodeBlock>
      </Section>
    </>
  )
}
