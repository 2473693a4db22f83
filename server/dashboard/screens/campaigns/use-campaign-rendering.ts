import { useDebouncedValue } from '@mantine/hooks'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import type { ApiError, Result } from '../../api/client.ts'
import { useScope } from '../../api/scope.tsx'
import { type CampaignValues, previewBodyOf } from './campaign-values.ts'

const operation = 'POST /v1/campaigns/:id/render'

/** Milliseconds without a change before it is rendered, so that not each letter is a request. */
const pauseMs = 500

/** Whom a message is shown for. */
export type ShownFor = { id: string; email: string }

export type CampaignRendering = {
  /** The last preview that was rendered. Undefined: there is none yet. */
  preview: Result<typeof operation> | undefined
  error: ApiError | null
  retry: () => void
  /** Null: a sample. */
  person: ShownFor | null
  showFor: (person: ShownFor | null) => void
}

/** Renders a draft as it is written now, a moment after each change. What was rendered before stays until then. */
export function useCampaignRendering(id: string | undefined, values: CampaignValues): CampaignRendering {
  const { accountId, mode, call } = useScope()
  const [person, showFor] = useState<ShownFor | null>(null)
  const [written] = useDebouncedValue(JSON.stringify(previewBodyOf(values)), pauseMs)
  const body = { ...JSON.parse(written), ...(person !== null && { subscriberId: person.id }) }
  const isChosen = values.source === 'own' || values.templateId !== ''
  const { data, error, refetch } = useQuery<Result<typeof operation>, ApiError>({
    queryKey: [accountId, mode, operation, id, body],
    queryFn: () => call(operation, { params: { id: id ?? '' }, body }),
    enabled: id !== undefined && isChosen,
    placeholderData: (before, of) => (of?.queryKey[3] === id ? before : undefined),
  })
  return { preview: isChosen ? data : undefined, error, retry: () => void refetch(), person, showFor }
}
