import { Checkbox, Stack } from '@mantine/core'
import type { UseFormReturnType } from '@mantine/form'
import { useGet } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import type { CampaignValues } from './campaign-values.ts'

/** As many segments as one page of the API has. */
const offered = 100

/** The segments of the chosen audience, where it has some. */
export function SegmentsField({ form }: { form: UseFormReturnType<CampaignValues> }) {
  const { can } = useScope()
  const { audienceId, segmentIds } = form.values
  const { data } = useGet(
    'GET /v1/segments',
    { query: { audienceId, limit: offered } },
    { enabled: audienceId !== '' && can('segments:read') },
  )
  const known = data?.data ?? []
  const others = segmentIds.filter((id) => !known.some((segment) => segment.id === id))
  if (audienceId === '' || (known.length === 0 && others.length === 0)) return null
  return (
    <Checkbox.Group
      label="Segments"
      description="It goes to those who are in at least one of them when it starts, to each once. None: to the whole audience."
      {...form.getInputProps('segmentIds')}
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
