import { Button } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { useNavigate, useParams } from '@tanstack/react-router'
import { useState } from 'react'
import { useChange, useGet } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import { Confirm } from '../../components/confirm.tsx'
import { Loaded } from '../../components/loaded.tsx'
import { Screen } from '../../components/screen.tsx'
import { ScreenLink } from '../../components/screen-link.tsx'
import { unread } from '../../components/unread.tsx'
import type { Segment } from './segment.ts'
import { SegmentEditor } from './segment-editor.tsx'

/** One segment: its conditions, and the people whom they choose now. */
export function SegmentDetail() {
  const { id = '' } = useParams({ strict: false })
  const { can } = useScope()
  const query = useGet('GET /v1/segments/:id', { params: { id } })
  const [isDeleting, setDeleting] = useState(false)
  const { data: segment } = query
  return (
    <Screen
      title={segment?.name ?? 'Segment'}
      subtitle={segment && <AudienceLine id={segment.audienceId} />}
      parent={{ label: 'Segments', path: '/segments' }}
      action={
        segment &&
        can('segments:write') && (
          <Button variant="default" onClick={() => setDeleting(true)}>
            Delete
          </Button>
        )
      }
    >
      <Loaded query={query} what="segment">
        {(read) => <SegmentEditor key={read.id} id={read.id} audienceId={read.audienceId} initial={read} />}
      </Loaded>
      {isDeleting && segment && <DeleteSegment segment={segment} onClose={() => setDeleting(false)} />}
    </Screen>
  )
}

function AudienceLine({ id }: { id: string }) {
  const { can } = useScope()
  const query = useGet('GET /v1/audiences/:id', { params: { id } }, { enabled: can('audiences:read') })
  const { data } = query
  if (data === undefined) return unread(query, 'The audience') ?? <>Of an audience</>
  return (
    <>
      Of the audience <ScreenLink to={`/audiences/${id}`}>{data.name}</ScreenLink>
    </>
  )
}

function DeleteSegment({ segment: { id, name }, onClose }: { segment: Segment; onClose: () => void }) {
  const { path } = useScope()
  const navigate = useNavigate()
  const remove = useChange('DELETE /v1/segments/:id')
  const onSuccess = () => {
    notifications.show({ message: `${name} was deleted.` })
    onClose()
    void navigate({ to: path('/segments') })
  }
  return (
    <Confirm
      title={`Delete ${name}?`}
      action="Delete the segment"
      isRunning={remove.isPending}
      error={remove.error}
      onClose={onClose}
      onConfirm={() => remove.mutate({ params: { id } }, { onSuccess })}
    >
      Its conditions are lost. The people and the audience stay as they are. It cannot be deleted while a campaign to it
      is scheduled, sending or paused. Drafts to it cannot be sent until they have another one, or none.
    </Confirm>
  )
}
