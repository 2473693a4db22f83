import { useGet } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import { Section } from '../../components/facts.tsx'
import { LinkButton } from '../../components/link-button.tsx'
import { ScreenLink } from '../../components/screen-link.tsx'

/** Segments that are named here. The others are in the list of segments. */
const shown = 10

/** The segments of an audience, in one line, and the button that makes one. */
export function AudienceSegments({ audienceId }: { audienceId: string }) {
  const { can } = useScope()
  const { data } = useGet('GET /v1/segments', { query: { audienceId, limit: shown } })
  const create = can('segments:write') && (
    <LinkButton size="xs" variant="default" to="/segments/new" search={{ audience: audienceId }}>
      Create segment
    </LinkButton>
  )
  return (
    <Section title="Segments" action={create}>
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
