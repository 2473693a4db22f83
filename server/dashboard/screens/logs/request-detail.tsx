import { useParams } from '@tanstack/react-router'
import type { Result } from '../../api/client.ts'
import { useGet } from '../../api/hooks.ts'
import { CodeBlock } from '../../components/code-block.tsx'
import { Copyable } from '../../components/copyable.tsx'
import { Facts, Section } from '../../components/facts.tsx'
import { Loaded } from '../../components/loaded.tsx'
import { Marked } from '../../components/marked.tsx'
import { Screen } from '../../components/screen.tsx'
import { ScreenLink } from '../../components/screen-link.tsx'
import { wordOf } from '../../components/state.tsx'
import { ExactTime } from '../../components/time.tsx'
import { durationOf, RequestStatus } from './request.tsx'

type Details = Result<'GET /v1/request-logs/:id'>

/** One request: where it failed, with its error and what is kept of its body. */
export function RequestDetail() {
  const { id = '' } = useParams({ strict: false })
  const query = useGet('GET /v1/request-logs/:id', { params: { id } })
  const title = query.data === undefined ? 'Request' : `${query.data.method} ${query.data.route}`
  return (
    <Screen title={title} parent={{ label: 'Logs', path: '/logs' }}>
      <Loaded query={query} what="request">
        {(request) => <RequestFacts request={request} />}
      </Loaded>
    </Screen>
  )
}

function RequestFacts({ request }: { request: Details }) {
  const { id, at, path, status, key, ipAddress, error, requestBody } = request
  return (
    <>
      <Facts
        of={[
          ['Answer', <RequestStatus key="status" status={status} />],
          ['Path', <Copyable key="path" label="Copy the path" value={path} wraps />],
          ['When', <ExactTime key="at" at={at} />],
          ['Duration', <span key="duration">{durationOf(request)}</span>],
          [
            'Key',
            <ScreenLink key="key" to="/logs" search={{ key: key.id }} title={key.id}>
              {key.name}
            </ScreenLink>,
          ],
          ['From', <span key="from">{ipAddress ?? 'Not known'}</span>],
          ['Request ID', <Copyable key="id" label="Copy the ID of the request" value={id} />],
        ]}
      />
      {error !== null && (
        <Section title="Error">
          <p>
            <strong>{wordOf(error.code)}</strong>: <Marked>{error.message}</Marked>
          </p>
          {error.details.length > 0 && (
            <ul>
              {error.details.map((detail) => (
                <li key={`${detail.path} ${detail.message}`}>
                  <span className="mono">{detail.path}</span>
                  {detail.message !== null && `: ${detail.message}`}
                </li>
              ))}
            </ul>
          )}
        </Section>
      )}
      {requestBody !== null && requestBody !== undefined && (
        <Section title="Body">
          <p className="dimmed">Without secrets and the contents of emails: of these, type and size are kept.</p>
          <CodeBlock>{JSON.stringify(requestBody, null, 2)}</CodeBlock>
        </Section>
      )}
    </>
  )
}
