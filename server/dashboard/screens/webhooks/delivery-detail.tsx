import { Button } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { useParams } from '@tanstack/react-router'
import type { Result } from '../../api/client.ts'
import { useChange, useGet } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import { CodeBlock } from '../../components/code-block.tsx'
import { Copyable } from '../../components/copyable.tsx'
import { ErrorNotice } from '../../components/error-notice.tsx'
import { Facts, Section } from '../../components/facts.tsx'
import { Loaded } from '../../components/loaded.tsx'
import { Screen } from '../../components/screen.tsx'
import { ScreenLink } from '../../components/screen-link.tsx'
import { State } from '../../components/state.tsx'
import { ExactTime, Time } from '../../components/time.tsx'

type Delivery = Result<'GET /v1/webhooks/:id/deliveries/:deliveryId'>

const waits: Readonly<Record<NonNullable<Delivery['waitingFor']>, string>> = {
  retry_schedule: 'the time of its next attempt',
  endpoint_limit: 'the endpoint, which has as many requests in flight as it takes',
  account_share: 'the share of the account, which is used up at present',
  claim: 'its turn, which comes in a moment',
}

const pollMs = 3_000

/** One delivery: every attempt, what the endpoint answered, and what it waits for. */
export function DeliveryDetail() {
  const { id = '', deliveryId = '' } = useParams({ strict: false })
  const { can } = useScope()
  const query = useGet(
    'GET /v1/webhooks/:id/deliveries/:deliveryId',
    { params: { id, deliveryId } },
    { pollMs: (delivery) => (delivery?.status === 'pending' ? pollMs : false) },
  )
  const resend = useChange('POST /v1/webhooks/:id/deliveries/:deliveryId/resend')
  const { data: delivery } = query
  return (
    <Screen
      title={delivery?.eventType ?? 'Delivery'}
      parent={{ label: 'Webhook', path: `/webhooks/${id}` }}
      subtitle={delivery && <State of={delivery.status} />}
      action={
        can('webhooks:write') && (
          <Button
            loading={resend.isPending}
            onClick={() =>
              resend.mutate(
                { params: { id, deliveryId } },
                { onSuccess: () => notifications.show({ message: 'It is sent again now.' }) },
              )
            }
          >
            Send again
          </Button>
        )
      }
    >
      {resend.error !== null && <ErrorNotice error={resend.error} />}
      <Loaded query={query} what="delivery">
        {(read) => <Details delivery={read} webhookId={id} />}
      </Loaded>
    </Screen>
  )
}

type DetailsProps = { delivery: Delivery; webhookId: string }

function Details({ delivery, webhookId }: DetailsProps) {
  const { waitingFor, nextAttemptAt, attempts } = delivery
  const { can } = useScope()
  return (
    <>
      <Facts
        of={[
          ...(waitingFor === null ? [] : ([['Waits for', waits[waitingFor]]] as const)),
          ...(nextAttemptAt === null
            ? []
            : ([['Next attempt', <Time key="at" at={nextAttemptAt} isAhead />]] as const)),
          ['Event', <EventOf key="event" delivery={delivery} />],
          ['Created', <ExactTime key="at" at={delivery.createdAt} />],
          ['ID', <Copyable key="id" label="Copy the ID" value={delivery.id} />],
        ]}
      />
      <Section title="Attempts">
        {attempts.length === 0 && <p className="dimmed">None yet.</p>}
        <ol className="timeline">
          {attempts.toReversed().map((attempt) => (
            <li key={attempt.number}>
              <span className="dimmed">
                <ExactTime at={attempt.startedAt} />
              </span>
              <State of={attempt.error === null ? 'succeeded' : 'failed'} />
              <div className="said">
                {attempt.responseStatus === null
                  ? (attempt.error ?? 'No answer')
                  : `Answered ${attempt.responseStatus}`}
                <span className="second-line wraps">
                  After <span className="number">{attempt.durationMs} ms</span>
                  {attempt.responseStatus !== null && attempt.error !== null && `: ${attempt.error}`}
                </span>
                {attempt.responseBody !== null && attempt.responseBody !== '' && (
                  <CodeBlock>{attempt.responseBody}</CodeBlock>
                )}
                <RequestOf attempt={attempt} />
              </div>
            </li>
          ))}
        </ol>
      </Section>
      {can('events:read') && <Body delivery={delivery} webhookId={webhookId} />}
    </>
  )
}

/** Where an attempt went, and its headers. The body is the same for all attempts. */
function RequestOf({ attempt: { number, request } }: { attempt: Delivery['attempts'][number] }) {
  if (request === null) return null
  const { url, headers } = request
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
  return (
    <details className="disclosure">
      <summary>
        Request {number}
        {url !== null && (
          <>
            : <span className="mono">POST {url}</span>
          </>
        )}
      </summary>
      <CodeBlock>{lines.join('\n')}</CodeBlock>
      <p className="dimmed">
        {url === null && 'Its URL is not known any more. '}
        Not shown: the signatures, x-service-signature and webhook-signature, which are made anew for each attempt and
        not kept; traceparent; and the headers of the connection: host, connection, content-length and accept-encoding.
      </p>
    </details>
  )
}

function EventOf({ delivery: { sample, eventId } }: { delivery: Delivery }) {
  const { can, portal } = useScope()
  if (sample) return 'A sample, made up for a test'
  // The portal has no screen of events.
  if (portal !== null || !can('events:read')) return <Copyable label="Copy the ID of the event" value={eventId} />
  return <ScreenLink to={`/events/${eventId}`}>{eventId}</ScreenLink>
}

/** The body of the request, as it is sent. */
function Body({ delivery: { id: deliveryId }, webhookId: id }: DetailsProps) {
  const {
    data: event,
    error,
    refetch,
  } = useGet('GET /v1/webhooks/:id/deliveries/:deliveryId/event', {
    params: { id, deliveryId },
  })
  if (error !== null) return <ErrorNotice error={error} onRetry={() => void refetch()} />
  // It is in a header of deliveries, and not in their body.
  const { mode: _mode, ...pushed }: Readonly<Record<string, unknown>> = event ?? {}
  return (
    <Section title="Body of the request">
      {event === undefined ? <p className="dimmed">…</p> : <CodeBlock>{JSON.stringify(pushed, null, 2)}</CodeBlock>}
    </Section>
  )
}
