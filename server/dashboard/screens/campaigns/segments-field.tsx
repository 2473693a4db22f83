import { Checkbox, Stack } from '@mantine/core'
import type { UseFormReturnType } from '@mantine/form'
import { useChoices } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import { newestOffered } from '../../components/newest-offered.ts'
import { unread } from '../../components/unread.tsx'
import type { CampaignValues } from './campaign-values.ts'

/** Reads the segments of an audience, where one is chosen and the reader may see them. */
export function useSegmentsOf(audienceId: string) {
  const { can } = useScope()
  const isRead = audienceId !== '' && can('segments:read')
  return useChoices('GET /v1/segments', { query: { audienceId } }, { enabled: isRead })
}

/** The segments of the chosen audience, where it has some. */
export function SegmentsField({ form }: { form: UseFormReturnType<CampaignValues> }) {
  const { audienceId, segmentIds } = form.values
  const segments = useSegmentsOf(audienceId)
  const known = segments.data ?? []
  const others = segmentIds.filter((id) => !known.some((segment) => segment.id === id))
  const fault = unread(segments, 'The segments')
  if (audienceId === '' || (known.length === 0 && others.length === 0)) return fault
  return (
    <Checkbox.Group
      label="Segments"
      description={`It goes to those who are in at least one of them when it starts, to each once. None: to the whole audience. ${newestOffered(segments)}`}
      {...form.getInputProps('segmentIds')}
      {...(fault !== null && { error: fault })}
    >
      <Stack gap={6} mt="xs" className="segments">
        {known.map(({ id, name }) => (
          <Checkbox key={id} size="xs" value={id} label={name} />
        ))}
        {segments.data !== undefined && others.map((id) => <Checkbox key={id} size="xs" value={id} label={id} />)}
      </Stack>
    </Checkbox.Group>
  )
}
