import { Checkbox, ScrollArea, Stack } from '@mantine/core'
import { useChoices } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import { newestOffered } from '../../components/newest-offered.ts'
import { unread } from '../../components/unread.tsx'

/** The topics that the people of an import are subscribed to, where the account has some that the reader may see. */
export function TopicsField({ value, onChange }: { value: readonly string[]; onChange: (ids: string[]) => void }) {
  const topics = useTopics()
  const { data = [] } = topics
  if (data.length === 0) return unread(topics, 'The topics')
  return (
    <Checkbox.Group
      label="Topics"
      description={`The people are subscribed to them. Who left one before is not subscribed again. ${newestOffered(topics)}`}
      value={[...value]}
      onChange={onChange}
    >
      <ScrollArea.Autosize mah={220} mt="xs">
        <Stack gap={6}>
          {data.map(({ id, name }) => (
            <Checkbox key={id} size="xs" value={id} label={name} />
          ))}
        </Stack>
      </ScrollArea.Autosize>
    </Checkbox.Group>
  )
}

/** The names of topics; the IDs of those that are deleted or that the role does not show. */
export function TopicNames({ ids }: { ids: readonly string[] }) {
  const { data = [] } = useTopics()
  const names = new Map(data.map(({ id, name }) => [id, name]))
  return ids.map((id) => names.get(id) ?? id).join(', ')
}

function useTopics() {
  const { can } = useScope()
  return useChoices('GET /v1/topics', { query: {} }, { enabled: can('topics:read') })
}
