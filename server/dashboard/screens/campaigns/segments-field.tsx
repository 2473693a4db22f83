import { Checkbox, Stack } from '@mantine/core'
import type { UseFormReturnType } from '@mantine/form'
import { useGet } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import { unread } from '../../components/unread.tsx'
import type { CampaignValues } from './campaign-values.ts'

/** As many segments as one page of the API has. */
const offered = 100

/** Reads the segments of an audience, where one is chosen and the reader may see them. */
export function useSegmentsOf(audienceId: string) {
  const { can } = useScope()
  const isRead = audienceId !== '' && can('segments:read')
  return useGet('GET /v1/segments', { query: { audienceId, limit: offered } }, { enabled: isRead })
}

/** The segments of the chosen audience, where it has some. */
export function SegmentsField({ form }: { form: UseFormReturnType<CampaignValues> }) {
  const { audienceId, segmentIds } = form.values
  const query = useSegmentsOf(audienceId)
  const { data } = query
  const known = data?.data ?? []
  const others = segmentIds.filter((id) => !known.some((segment) => segment.id === id))
  const fault = unread(query, 'The segments')
  if (audienceId === '' || (known.length === 0 && others.length === 0)) return fault
  return (
    <Checkbox.Group
      label="Segments"
      description="It goes to those who are in at least one of them when it starts, to each once. None: to the whole audience."
      {...form.getInputProps('segmentIds')}
      {...(fault !== null && { error: fault })}
    >
      <Stack gap={6} mt="xs" className="segments">
        {known.map(({ id, name }) => (
          <Checkbox key={id} size="xs" value={id} label={name} />
        ))}
        {data !== undefined && others.map((id) => <Checkbox key={id} size="xs" value={id} label={id} />)}
      </Stack>
    </Checkbox.Group>
  )
}
