import { Checkbox, Stack } from '@mantine/core'
import type { Result } from '../../api/client.ts'

type Props = { of: Result<'GET /v1/event-types'>['data'] }

/** A box for each event type, by what it is about. They stand in a `Checkbox.Group`. */
export function EventTypeBoxes({ of }: Props) {
  const groups = Map.groupBy(of, ({ type }) => type.split('.')[0] ?? '')
  return (
    <div className="permission-grid">
      {[...groups].map(([group, members]) => (
        <Stack key={group} gap={4} mt="xs">
          {members.map(({ type, meaning }) => (
            <Checkbox key={type} value={type} size="xs" label={type} title={meaning} className="mono" />
          ))}
        </Stack>
      ))}
    </div>
  )
}
