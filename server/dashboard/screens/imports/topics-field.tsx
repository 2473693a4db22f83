import { Checkbox, ScrollArea, Stack } from '@mantine/core'
import { useGet } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import { unread } from '../../components/unread.tsx'

/** As many topics as one page of the API has. */
const offered = 100

/** The topics that the people of an import are subscribed to, where the account has some that the reader may see. */
export function TopicsField({ value, onChange }: { value: readonly string[]; onChange: (ids: string[]) => void }) {
  const { topics, hasMore, fault } = useTopics()
  if (topics.length === 0) return fault
  return (
    <Checkbox.Group
      label="Topics"
      description={`The people are subscribed to them. Who left one before is not subscribed again.${hasMore ? ` The newest ${offered} are offered.` : ''}`}
      value={[...value]}
      onChange={onChange}
    >
      <ScrollArea.Autosize mah={220} mt="xs">
        <Stack gap={6}>
          {topics.map(({ id, name }) => (
            <Checkbox key={id} size="xs" value={id} label={name} />
          ))}
        </Stack>
      </ScrollArea.Autosize>
    </Checkbox.Group>
  )
}

/** The names of topics; the IDs of those that are deleted or that the role does not show. */
export function TopicNames({ ids }: { ids: readonly string[] }) {
  const { topics } = useTopics()
  const names = new Map(topics.map(({ id, name }) => [id, name]))
  return ids.map((id) => names.get(id) ?? id).join(', ')
}

function useTopics() {
  const { can } = useScope()
  const query = useGet('GET /v1/topics', { query: { limit: offered } }, { enabled: can('topics:read') })
  const { data } = query
  return { topics: data?.data ?? [], hasMore: data?.nextCursor != null, fault: unread(query, 'The topics') }
}
