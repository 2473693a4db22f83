import { useGet } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import { ErrorNotice } from '../../components/error-notice.tsx'
import { Section } from '../../components/facts.tsx'
import { LinkButton } from '../../components/link-button.tsx'
import { ScreenLink } from '../../components/screen-link.tsx'

/** Segments that are named here. The others are in the list of segments. */
const shown = 10

/** Reads the segments of an audience, where the reader may see them. */
export function useAudienceSegments(audienceId: string) {
  const { can } = useScope()
  return useGet('GET /v1/segments', { query: { audienceId, limit: shown } }, { enabled: can('segments:read') })
}

type Props = { audienceId: string; query: ReturnType<typeof useAudienceSegments> }

/** The segments of an audience, in one line, and the button that makes one. */
export function AudienceSegments({ audienceId, query }: Props) {
  const { can } = useScope()
  const { data, error, refetch } = query
  const create = can('segments:write') && (
    <LinkButton size="xs" variant="default" to="/segments/new" search={{ audience: audienceId }}>
      Create segment
    </LinkButton>
  )
  return (
    <Section title="Segments" action={create}>
      {data === undefined && error !== null && <ErrorNotice error={error} onRetry={() => void refetch()} />}
      {data?.data.length === 0 && (
        <p className="dimmed">None yet. A segment is the people of this audience for whom conditions hold.</p>
      )}
      {data !== undefined && data.data.length > 0 && (
        <ul className="inline-links">
          {data.data.map(({ id, name }) => (
            <li key={id}>
              <ScreenLink to={`/segments/${id}`} title={name}>
                {name}
              </ScreenLink>
            </li>
          ))}
          {data.nextCursor !== null && (
            <li>
              <ScreenLink to="/segments" search={{ audience: audienceId }}>
                All segments
              </ScreenLink>
            </li>
          )}
        </ul>
      )}
    </Section>
  )
}
