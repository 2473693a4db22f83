import { useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { useScope } from '../../api/scope.tsx'
import { RoleRefusal } from '../../components/role-refusal.tsx'
import { Screen } from '../../components/screen.tsx'
import { AudienceSelect, NoAudience, useHasNoAudience } from '../people/audience-select.tsx'
import type { Segment } from './segment.ts'
import { SegmentEditor } from './segment-editor.tsx'

const initial: Pick<Segment, 'name' | 'conditions'> = {
  name: '',
  conditions: { type: 'field', field: 'status', operator: 'is', value: 'active' },
}

/** Makes a segment. */
export function NewSegment() {
  const { can } = useScope()
  const search: Record<string, unknown> = useSearch({ strict: false })
  const [audienceId, setAudienceId] = useState(typeof search.audience === 'string' ? search.audience : '')
  const hasNoAudience = useHasNoAudience()
  if (!can('segments:write')) return <RoleRefusal title="Segments" permission="segments:write" />
  return (
    <Screen
      title="Create a segment"
      subtitle="The people of an audience for whom conditions hold. Who they are is looked up each time."
      parent={{ label: 'Segments', path: '/segments' }}
    >
      {hasNoAudience ? (
        <NoAudience what="A segment" />
      ) : (
        <>
          <div className="first-field">
            <AudienceSelect value={audienceId} onChange={setAudienceId} />
          </div>
          <SegmentEditor audienceId={audienceId} initial={initial} />
        </>
      )}
    </Screen>
  )
}
